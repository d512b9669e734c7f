package ops

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// shareLimit is what a slow store may cost a run.
const shareLimit = 5 * time.Second

// Runs are the records of runs.
func (e *Env) Runs() runs.Records {
	return runs.Records{
		Bulk: e.Journals, Single: e.Endings, Shared: e.Shared, ShareLimit: e.Process.Stretch.Limit(shareLimit), Now: e.Now, Program: e.Process.Name(),
	}
}

// EndsOpener begins journals of ends that are no run by a rule.
func (e *Env) EndsOpener(watch Reporter, why runs.Origin) runs.Opener {
	return func(ctx context.Context, targets []sandbox.Sandbox) *runs.Run {
		why.ID = cmp.Or(why.ID, e.RunID())
		return e.Runs().BeginEnds(ctx, why, e.Actor(), targets, watch)
	}
}

// RecordSwept writes down what a sweep has ended, which no verb asked for.
func (e *Env) RecordSwept(ctx context.Context, watch Reporter, swept []sandbox.Ref, reason string) {
	if len(swept) == 0 {
		return
	}
	var targets []sandbox.Sandbox
	var ended []sandbox.Ending
	for _, ref := range swept {
		targets = append(targets, sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID})
		ended = append(ended, sandbox.Ending{Ref: ref, Outcome: sandbox.OutcomeVerified, Reason: reason})
	}
	run := e.EndsOpener(watch, runs.Origin{Verb: runs.VerbSweep, Reason: reason})(ctx, targets)
	for _, one := range ended {
		_ = run.Result(one) // what is lost is warned of
	}
	run.FinishEnds(ctx)
}

// StatusRuns is how many of the newest runs are looked at: two days of one every
// five minutes.
const StatusRuns = 600

// CleanupRuns are the newest cleanup runs on record, the newest first, as far as they can
// be read.
func (e *Env) CleanupRuns(ctx context.Context, limit int) []runs.History {
	list, _ := e.Runs().All(ctx, runs.VerbCleanup, limit) // what cannot be read is not known; `cleanup runs` says why
	return list
}

// FormatFigure writes a figure of verify: a share in percent, all else as a whole number.
func FormatFigure(v float64, unit task.Unit) string {
	if unit == task.UnitShare {
		return fmt.Sprintf("%.1f%%", v*100)
	}
	return fmt.Sprintf("%.0f", v)
}
