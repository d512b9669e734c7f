package engine

import (
	"context"
	"errors"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// conclude says what came of a run, and closes its record. Stop is what ended it early; nil = it has
// come to its end.
func (r *runner) conclude(ctx context.Context, stop error) {
	run := r.run
	run.Verdict, run.EndedAt = run.verdict(), r.env.Now().UTC()
	switch {
	case stop == nil:
		run.err = run.outcome()
		run.State = RunDone
		if run.err != nil {
			run.State = RunFailed
		}
	case r.waiting != nil && r.out.failed == nil:
		run.State, run.err = RunWaiting, r.waiting
	case ctx.Err() != nil:
		run.State, run.err = RunInterrupted, context.Cause(ctx)
		r.watch.Note(r.goOnHint(""))
	default:
		run.State, run.err = RunInterrupted, stop
	}
	if run.err != nil {
		run.Kind, run.Error = fault.KindOf(run.err), r.watch.Redact(oneLine(run.err))
	}
	if err := r.out.write(entryEnd, stint{run.State, run.Verdict, run.Kind, run.Error, run.Calls}); err != nil {
		run.err = errors.Join(run.err, err)
	}
}

// verdict is true where every act has had its effect and every check of the verification holds.
func (r *Run) verdict() sandbox.Verdict {
	v := sandbox.True
	for _, s := range r.Steps {
		if s.Section != SectionVerification && s.Act == nil || s.State == NotSelected {
			continue
		}
		switch {
		case s.Verdict == sandbox.False || s.Kind == runbook.KindAct && s.State == Failed && s.Verdict != sandbox.Unknown:
			return sandbox.False
		case s.Verdict == sandbox.Unknown, !s.State.IsOver():
			v = sandbox.Unknown
		}
	}
	return v
}

// outcome decides the exit code of a run that has come to its end: the acts, then what the
// verification has found, then what could not be done, then what is not known.
func (r *Run) outcome() error {
	if err := r.actErrors(); err != nil {
		return err
	}
	var missed, failed, unknown []string
	for _, s := range r.Steps {
		switch {
		case s.Section == SectionVerification && s.Verdict == sandbox.False:
			missed = append(missed, s.Title)
		case s.State == Failed:
			failed = append(failed, s.Title+": "+s.Reason)
		case s.Section == SectionVerification && s.Verdict == sandbox.Unknown:
			unknown = append(unknown, s.Title)
		}
	}
	if r.DryRun { // it proves no effect
		missed, unknown = nil, nil
	}
	switch {
	case len(missed) > 0:
		return fault.New(fault.KindFound, "verification: %d not met: %s", len(missed), strings.Join(missed, "; "))
	case len(failed) > 0:
		what := "steps"
		if len(failed) == 1 {
			what = "step"
		}
		return fault.New(fault.KindPartial, "%d %s failed: %s", len(failed), what, strings.Join(failed, "; "))
	case len(unknown) > 0:
		return fault.New(fault.KindUnavailable, "verification: %d unknown: %s", len(unknown), strings.Join(unknown, "; "))
	}
	return nil
}
