package fleet

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// extendTolerance is how much earlier than asked an end may be: times of an API are in whole seconds, and so is what is
// known of its clock.
const extendTolerance = 5 * time.Second

// interruptedRead is how long the read after a request may take that was interrupted before its answer.
const interruptedRead = 5 * time.Second

// Extension is the end of a sandbox around a request to move it.
type Extension struct {
	Before sandbox.Sandbox // right before the request; without an id nothing was sent
	After  sandbox.Sandbox // as another read shows it; without an id none did
}

// CanExtend is fault.KindUnsupported for a profile whose provider cannot move the end of a sandbox.
func (f *Fleet) CanExtend(profile string) error {
	_, _, err := requireAbility[providers.Extender](f, profile, "extend")
	return err
}

// Extend requests once that a sandbox ends later (providers.Extender), and reads it again, which decides also where the
// answer was lost. fault.KindUnverified: it was accepted, and the read does not show a later end. fault.KindPartial: the
// end is later, and not as late as until.
func (f *Fleet) Extend(ctx context.Context, ref sandbox.Ref, until time.Time) (Extension, error) {
	before, failed := callAbility(ctx, f, ref, "extend", func(e providers.Extender, ctx context.Context, id string) (sandbox.Sandbox, error) {
		f.recordEvent(ref, "extend", until.UTC().Format(time.RFC3339))
		return e.Extend(ctx, id, until)
	})
	x := Extension{Before: before}
	if before.ID == "" || failed != nil && ctx.Err() == nil && !effectUnknown(failed) {
		return x, failed
	}
	if ctx.Err() != nil {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(context.WithoutCancel(ctx), interruptedRead)
		defer stop()
	}
	now, err := f.Get(ctx, ref)
	switch {
	case err != nil && failed != nil:
		return x, fault.New(fault.KindOf(failed), "%w; whether its end was moved is not known, since the read after that failed too: %w", failed, err)
	case err != nil:
		return x, fault.New(fault.KindUnverified, "its end was to be moved, and the read after that failed: %w", err)
	}
	x.After = now
	return x, x.check(until, failed)
}

// check compares the two reads; failed is the error of the request between them.
func (x Extension) check(until time.Time, failed error) error {
	was, now := x.Before.ExpiresAt, x.After.ExpiresAt
	stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	switch {
	case x.After.State.Ended():
		return fault.New(fault.KindGone, "it has ended meanwhile: it is %s", x.After.State)
	case x.After.State != sandbox.StateRunning:
		return fault.New(fault.KindUnverified, "it does not run any more: it is %s", x.After.State)
	case now.IsZero():
		return fault.New(fault.KindUnverified, "another read shows no end of it any more; before that it was %s", stamp(was))
	case now.Before(was):
		return fault.New(fault.KindUnverified, "another read shows an EARLIER end: %s, and before that %s", stamp(now), stamp(was)).
			WithHint("extend it again, to a time that its provider grants")
	case !now.After(was) && failed != nil:
		return fault.New(fault.KindOf(failed), "%w; another read shows that its end was not moved: it is %s", failed, stamp(now))
	case !now.After(was):
		return fault.New(fault.KindUnverified, "the request was accepted, and another read shows the end as before: %s", stamp(now))
	case now.Before(until.Add(-extendTolerance)):
		return fault.New(fault.KindPartial, "its provider gave less than was asked: it ends at %s instead of %s", stamp(now), stamp(until))
	}
	return nil
}
