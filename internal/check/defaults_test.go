package check_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/check"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// TestADefaultThatDoesNotFitDecidesNothing, unless somebody has configured it.
func TestADefaultThatDoesNotFitDecidesNothing(t *testing.T) {
	t.Parallel()
	subject := func(active int64, configured triage.Thresholds) *check.Subject {
		const days = 2*24*time.Hour + time.Minute
		return &check.Subject{
			Provider: "prod", Limits: triage.DefaultThresholds().With(configured),
			Figures: triage.FleetSignals{Active: &active, OverFor: triage.OverFor{Active: days, Normal: days, Escalate: days}},
		}
	}
	rows := func(s *check.Subject) (verdicts []sandbox.Verdict) {
		for _, id := range []string{"sandbox_leak_detected", "active_escalated"} {
			c, _ := check.Alert(id)
			assert.Equal(t, c.Judge(s), c.Explain(s).Verdict)
			verdicts = append(verdicts, c.Judge(s))
		}
		return append(verdicts, check.ActiveOver().Judge(s), check.Target("active_normal").Judge(s))
	}
	const yes, no, open = sandbox.True, sandbox.False, sandbox.Unknown
	assert.Equal(t, []sandbox.Verdict{no, no, no, open}, rows(subject(236, triage.Thresholds{})))
	assert.Equal(t, []sandbox.Verdict{yes, yes, yes, no}, rows(subject(236, triage.Thresholds{ActiveMax: 20})), "configured")
	assert.Equal(t, []sandbox.Verdict{no, yes, no, no}, rows(subject(236, triage.Thresholds{ActiveNormal: 5, EscalateActive: 50})), "these two are configured")
	assert.Equal(t, []sandbox.Verdict{no, no, no, yes}, rows(subject(3, triage.Thresholds{})))

	flags := check.Flags(subject(236, triage.Thresholds{}), noon)
	assert.Equal(t, "too_many_active", flags[0].ID)
	assert.Equal(t, "active 236, above the default of 20 for 2d: `sbx config suggest` prints limits that fit", flags[0].Say)
	for _, f := range flags {
		assert.False(t, f.IsProblem(), f.ID)
	}
	assert.Empty(t, check.ActiveOver().DefaultNote(subject(20, triage.Thresholds{})))
}
