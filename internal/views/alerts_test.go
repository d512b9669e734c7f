package views_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/alert"
	"sbx/internal/check"
	"sbx/internal/views"
)

func TestAlertsLine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	one := func(rule string, phase alert.Phase, held time.Duration, gap time.Duration) alert.Alert {
		return alert.Alert{
			Rule: check.Check{ID: rule}, Provider: "prod", At: at, HoldFor: 30 * time.Minute,
			State: alert.State{Phase: phase, Since: at.Add(-held), GapNanoseconds: gap},
		}
	}
	assert.Empty(t, views.AlertsLine(nil))
	pending := one("active_escalated", alert.Pending, 18*time.Minute, 12*time.Minute)
	assert.Equal(t, "1 alert pending: active_escalated at prod for 18m of 30m, data gap 12m", views.AlertsLine([]alert.Alert{pending}))
	assert.Equal(t, "2 alerts firing: a at prod for 1h; b at prod for 5m. 1 alert pending: active_escalated at prod for 18m of 30m, data gap 12m",
		views.AlertsLine([]alert.Alert{one("a", alert.Firing, time.Hour, 0), pending, one("b", alert.Firing, 5*time.Minute, 0)}))
}
