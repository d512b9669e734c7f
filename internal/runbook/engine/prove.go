package engine

import (
	"context"
	"strings"
	"time"

	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// prove looks until the effect of an act is seen: each id was verified by the operation, and now the
// condition that the runbook expects has to hold.
func (r *runner) prove(ctx context.Context, s runbook.Step, rec *Step) error {
	if s.Expect != "" {
		rec.Act.Effect, rec.Evidence = r.await(ctx, s.Expect, s.Within, lookEvery(s.Within))
	}
	if ctx.Err() != nil {
		return r.interrupted(ctx, rec)
	}
	switch {
	case rec.Act.Error != "":
		rec.State, rec.Verdict, rec.Reason = Failed, sandbox.False, rec.Act.Error
	case s.Expect != "" && rec.Act.Effect != sandbox.True:
		rec.State, rec.Verdict = Failed, rec.Act.Effect
		rec.Reason = "its effect was not seen within " + sandbox.FormatDuration(s.Within)
		if len(rec.Evidence) > 0 {
			rec.Reason += "; seen last: " + strings.Join(rec.Evidence, "; ")
		}
	default:
		rec.Verdict, rec.Reason = sandbox.True, ""
	}
	return nil
}

// lookEvery is the time between two looks for an effect.
func lookEvery(within time.Duration) time.Duration {
	return min(max(within/10, time.Second), runbook.DefaultEvery)
}
