package engine

import (
	"context"
	"errors"
	"strings"

	"sbx/internal/fault"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// conclude decides in which state a run is left, and writes that as the last entry of its record. Stop is what
// ended it early; nil = no step is left.
func (r *runner) conclude(ctx context.Context, stop error) {
	run := r.run
	run.Verdict, run.EndedAt = run.verdict(), r.env.Now().UTC()
	switch {
	case stop == nil:
		run.State, run.err = RunDone, run.outcome()
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
	if err := r.out.write(entryConclusion, conclusion{run.State, run.Verdict, run.Kind, run.Error, run.Calls}); err != nil {
		run.err = errors.Join(run.err, err)
	}
}

// verdict is true where every act has had its effect and every check of the verification holds; one that failed
// makes it false, one that is not known or was not reached makes it unknown.
func (r *Run) verdict() sandbox.Verdict {
	verdict := sandbox.True
	for _, s := range r.Steps {
		counts := s.Section == SectionVerification || s.Act != nil
		if !counts || s.State == NotSelected {
			continue
		}
		actFailed := s.Kind == runbook.KindAct && s.State == Failed && s.Verdict != sandbox.Unknown
		if s.Verdict == sandbox.False || actFailed {
			return sandbox.False
		}
		if s.Verdict == sandbox.Unknown || !s.State.IsOver() {
			verdict = sandbox.Unknown
		}
	}
	return verdict
}

// outcome is the error of a run without a step that is left, by which its exit code is decided. The acts come first,
// then what the verification has found, then what could not be done, then what is not known.
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
	if r.DryRun { // nothing was done, so the verification proves nothing
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
