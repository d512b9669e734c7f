package cleanup

import (
	"context"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// lookAgain is how long a provider's own cleanup may take until what is still
// listed counts as left by it.
const lookAgain = 2 * time.Second

// ByProvider lets a provider clean up by its own rule, which knows no selector, no
// owner and no protection: so a protected sandbox in the profile refuses it. What it
// ended is held against what was there before, by id; what it left is skipped.
//
// Every sandbox is written down before. Of the run it goes by Fleet, World, Journal and
// Redact; Rule and Targets have no say.
func (r *Run) ByProvider(ctx context.Context, profile string, emergency bool) ([]sandbox.Ending, error) {
	one, err := r.Fleet.Narrow([]string{profile})
	if err != nil {
		return nil, err
	}
	before := one.Collect(ctx, providers.Query{All: true})
	if !before.Complete() {
		return nil, before.Err()
	}
	for _, s := range before.Items {
		if why := r.World.Protected(s); why != "" && !s.State.Ended() {
			return nil, fault.New(fault.KindRefused, "%s is %s, and a provider's own cleanup does not heed that; nothing was done", s.Ref(), why).
				WithHint("end by rule instead (`sbx cleanup --older-than 10m`), which leaves it")
		}
	}
	var there []sandbox.Sandbox
	for _, s := range before.Items {
		if s.State.Ended() {
			continue
		}
		there = append(there, s)
		if err := r.Journal.Append(EntryIntent, intentOf(s, fleet.Part[[]sandbox.LogLine]{}, true, r.Redact)); err != nil {
			return nil, err
		}
	}
	if _, err := one.ProviderCleanup(ctx, profile, emergency); err != nil {
		return nil, err
	}
	return r.settle(ctx, one, there)
}

// settle finds out what became of each: a list says who is left, and a look by id
// proves who is not.
func (r *Run) settle(ctx context.Context, one *fleet.Fleet, there []sandbox.Sandbox) ([]sandbox.Ending, error) {
	left := stillThere(ctx, one)
	if len(left) > 0 {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lookAgain):
		}
		left = stillThere(ctx, one)
	}
	var endings []sandbox.Ending
	var gone []sandbox.Sandbox
	for _, s := range there {
		if state, listed := left[s.Ref()]; listed {
			endings = append(endings, sandbox.Ending{Ref: s.Ref(), Outcome: sandbox.OutcomeSkipped, Reason: fmt.Sprintf("the provider's cleanup left it %s", state)})
			continue
		}
		gone = append(gone, s)
	}
	for e := range safety.Verify(ctx, one, gone) {
		endings = append(endings, e)
	}
	for _, e := range endings {
		if err := r.Journal.Append(EntryResult, resultOf(e, r.Redact)); err != nil {
			return endings, err
		}
	}
	return endings, nil
}

// stillThere is what a list shows to live on; a failed list shows nothing, and then
// each is looked up by its id.
func stillThere(ctx context.Context, f *fleet.Fleet) map[sandbox.Ref]sandbox.State {
	left := map[sandbox.Ref]sandbox.State{}
	for _, s := range f.Collect(ctx, providers.Query{All: true}).Items {
		if !s.State.Ended() && s.State != sandbox.StateTerminating {
			left[s.Ref()] = s.State
		}
	}
	return left
}
