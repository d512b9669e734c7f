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

// tracksTasks says that a profile would name the task of a sandbox if there
// were one: whoever creates sandboxes keeps what they were created for, and the rows of
// a control plane name it (R29).
func tracksTasks(f *fleet.Fleet, profile string) bool {
	for _, row := range f.Abilities() {
		if row.Provider == profile {
			return slices.ContainsFunc(row.Abilities, func(a fleet.AbilityCell) bool {
				return a.Has && (a.Name == "create" || a.Name == "records")
			})
		}
	}
	return false
}
