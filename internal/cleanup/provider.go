package cleanup

import (
	"context"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// relistAfter is how long a provider's own cleanup may take until what is still listed
// counts as left.
const relistAfter = 2 * time.Second

// RunProviderCleanup runs a provider's own cleanup, which has its own rule and knows no selector,
// owner or protection: a protected sandbox in the profile refuses it. The result is
// compared by id with what existed before; what was left is skipped.
//
// Every sandbox is recorded before. Of the run it uses Fleet, Environment and
// Record, not Rule and Targets.
func (r *Run) RunProviderCleanup(ctx context.Context, profile string, emergency bool) ([]sandbox.Ending, error) {
	one, err := r.Fleet.Narrow([]string{profile})
	if err != nil {
		return nil, err
	}
	before := one.Collect(ctx, providers.Query{All: true})
	if !before.Complete() {
		return nil, before.Err()
	}
	for _, s := range before.Items {
		if why := r.Environment.Protected(s); why != "" && !s.State.Ended() {
			return nil, fault.New(fault.KindRefused, "%s is %s, and a provider's own cleanup ignores that; nothing was done", s.Ref(), why).
				WithHint("use a rule instead (`sbx cleanup --older-than 10m`), which keeps it")
		}
	}
	var there []sandbox.Sandbox
	for _, s := range before.Items {
		if s.State.Ended() {
			continue
		}
		there = append(there, s)
		if err := r.Record.Intent(runs.IntentOf(s, true)); err != nil {
			return nil, err
		}
	}
	if _, err := one.ProviderCleanup(ctx, profile, emergency); err != nil {
		return nil, err
	}
	return r.settleProviderRun(ctx, one, there)
}

// settleProviderRun finds each sandbox's outcome: a listing shows which are left, and a read by
// id proves which are not.
func (r *Run) settleProviderRun(ctx context.Context, one *fleet.Fleet, there []sandbox.Sandbox) ([]sandbox.Ending, error) {
	left := listRemaining(ctx, one)
	if len(left) > 0 {
		if err := poll.Sleep(ctx, relistAfter); err != nil {
			return nil, err
		}
		left = listRemaining(ctx, one)
	}
	var endings []sandbox.Ending
	var gone []sandbox.Sandbox
	for _, s := range there {
		if state, listed := left[s.Ref()]; listed {
			endings = append(
				endings, sandbox.Ending{Ref: s.Ref(), Outcome: sandbox.OutcomeSkipped, Reason: fmt.Sprintf("after the provider's cleanup it is still %s", state)},
			)
			continue
		}
		gone = append(gone, s)
	}
	for e := range safety.Verify(ctx, one, gone) {
		endings = append(endings, e)
	}
	for _, e := range endings {
		if err := r.Record.Result(e); err != nil {
			return endings, err
		}
	}
	return endings, nil
}

// listRemaining lists the sandboxes that still live. A failed listing shows none, and then
// each is read by its id.
func listRemaining(ctx context.Context, f *fleet.Fleet) map[sandbox.Ref]sandbox.State {
	left := map[sandbox.Ref]sandbox.State{}
	for _, s := range f.Collect(ctx, providers.Query{All: true}).Items {
		if !s.State.Ended() && s.State != sandbox.StateTerminating {
			left[s.Ref()] = s.State
		}
	}
	return left
}
