package ops

import (
	"context"
	"errors"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/fleet"
)

// PartErrors are the errors of the parts that failed; an ability that is missing is no failure.
func PartErrors(ctx context.Context, o fleet.Observation) []error {
	if o.IsGhost() {
		return nil // that the parts do not exist is what was found
	}
	exit, work := o.Exit.Err, o.Work.Err
	if fault.KindOf(exit) == fault.KindNotFound {
		exit = nil // sbx started no program in it
	}
	if fault.KindOf(work) == fault.KindNotFound {
		work = nil // the program never started
	}
	all := []error{o.Usage.Err, o.Health.Err, o.Events.Err, o.Logs.Err, exit, work}
	return CauseOnce(ctx, slices.DeleteFunc(all, func(err error) bool {
		return err == nil || fleet.IsSkipped(err) || fault.KindOf(err) == fault.KindUnsupported
	}))
}

// CauseOnce says a single time that ctx ended, instead of once for each thing that
// failed because of it.
func CauseOnce(ctx context.Context, errs []error) []error {
	if ctx.Err() == nil {
		return errs
	}
	return append(slices.DeleteFunc(errs, fault.Interrupted), context.Cause(ctx))
}

// FailedLooks sums up why some of what was looked at could not be judged.
func FailedLooks(judged []fleet.Judged) []error {
	var unjudged []fleet.FailedLook
	for _, j := range judged {
		if j.Verdict.Unjudged() {
			unjudged = append(unjudged, fleet.FailedLook{Profile: j.Sandbox.Provider, Err: j.Failed})
		}
	}
	return fleet.FailedLooks(unjudged)
}

// EndCause names why ctx ended, where that is what made an operation fail: a signal and the
// operator's limit say more than "context canceled".
func EndCause(ctx context.Context, err error) error {
	if ctx.Err() == nil || !fault.Interrupted(err) {
		return nil
	}
	return context.Cause(ctx)
}

// CauseOr is what ended ctx, where that is behind an error, else the error.
func CauseOr(ctx context.Context, err error) error {
	if cause := EndCause(ctx, err); cause != nil {
		return cause
	}
	return err
}

// Mistakes takes joined errors apart.
func Mistakes(err error) []error {
	if list, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return list.Unwrap()
	}
	return []error{err}
}
