package views_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/ops/look"
	"sbx/internal/triage"
	"sbx/internal/views"
)

func TestThresholdLine(t *testing.T) {
	t.Parallel()
	usual, own := look.Figures{Provider: "e2b", Limits: triage.DefaultThresholds()}, look.Figures{Provider: "local", Limits: triage.DefaultThresholds()}
	const text = "stuck over 10m and idle 1m; active 20; timeouts 5%; quota 80%"
	assert.Empty(t, views.ThresholdLine(nil))
	assert.Equal(t, "limits: "+text, views.ThresholdLine([]look.Figures{usual, own}))
	own.Limits.StuckAge, own.Limits.AgeOnly = time.Hour, true
	assert.Equal(t, "limits: "+text+" | local: stuck over 1h; active 20; timeouts 5%; quota 80%", views.ThresholdLine([]look.Figures{own, usual, usual}))
}
