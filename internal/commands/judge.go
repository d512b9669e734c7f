package commands

import (
	"context"
	"errors"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/fleet"
)

// missing says in one line why a part of an observation has no answer.
func missing(err error) string {
	text := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Err != nil {
		text = f.Err.Error()
	}
	if fault.KindOf(err) == fault.KindUnsupported {
		return "cannot be known: " + text
	}
	return "could not be read: " + text
}

// partErrors are those of the parts that failed; an ability that is missing is no failure.
func partErrors(ctx context.Context, o fleet.Observation) []error {
	exit, work := o.Exit.Err, o.Work.Err
	if fault.KindOf(exit) == fault.KindNotFound {
		exit = nil // sbx started no program in it
	}
	if fault.KindOf(work) == fault.KindNotFound {
		work = nil // nobody ever heard of it
	}
	all := []error{o.Usage.Err, o.Health.Err, o.Events.Err, o.Logs.Err, exit, work}
	return once(ctx, slices.DeleteFunc(all, func(err error) bool {
		return err == nil || fault.KindOf(err) == fault.KindUnsupported
	}))
}

// once says a single time that ctx ended, instead of once for each thing that
// failed because of it.
func once(ctx context.Context, errs []error) []error {
	if ctx.Err() == nil {
		return errs
	}
	return append(slices.DeleteFunc(errs, fault.Interrupted), context.Cause(ctx))
}
