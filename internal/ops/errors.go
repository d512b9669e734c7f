package ops

import (
	"context"
	"errors"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/fleet"
)

// partErrors are those of the parts that failed; an ability that is missing is no failure.
func partErrors(ctx context.Context, o fleet.Observation) []error {
	exit, work := o.Exit.Err, o.Work.Err
	if fault.KindOf(exit) == fault.KindNotFound {
		exit = nil // sbx started no program in it
	}
	if fault.KindOf(work) == fault.KindNotFound {
		work = nil // the program never started
	}
	all := []error{o.Usage.Err, o.Health.Err, o.Events.Err, o.Logs.Err, exit, work}
	return causeOnce(ctx, slices.DeleteFunc(all, func(err error) bool {
		return err == nil || fault.KindOf(err) == fault.KindUnsupported
	}))
}

// causeOnce says a single time that ctx ended, instead of once for each thing that
// failed because of it.
func causeOnce(ctx context.Context, errs []error) []error {
	if ctx.Err() == nil {
		return errs
	}
	return append(slices.DeleteFunc(errs, fault.Interrupted), context.Cause(ctx))
}

// failedLooks sums up why some of what was looked at could not be judged.
func failedLooks(judged []fleet.Judged) []error {
	var unjudged []fleet.Observation
	for _, j := range judged {
		if j.Seen != nil && j.Verdict.Unjudged() {
			unjudged = append(unjudged, *j.Seen)
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

// causeOr is what ended ctx, where that is behind an error, else the error.
func causeOr(ctx context.Context, err error) error {
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
