package ops

import (
	"context"
	"slices"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
)

// ListRequest says which sandboxes are listed.
type ListRequest struct {
	Selector selector.Selector
	Look     bool // ask those that may be stuck themselves
}

// ListResult is what a listing came to, beside its items.
type ListResult struct {
	Census    Census // of everything that the selectors take, --stuck apart
	Counted   bool   // the census counts everything; a listing that stopped at its limit counts no more
	Truncated bool   // there are more than the limit allows
}

// Lister lists sandboxes, again and again with --watch.
type Lister struct {
	env   *Env
	fleet *fleet.Fleet
	req   ListRequest
}

// NewLister opens the fleet that is listed.
func NewLister(ctx context.Context, env *Env, req ListRequest) (*Lister, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return &Lister{env: env, fleet: f, req: req}, nil
}

// Profiles are those that are asked.
func (l *Lister) Profiles() []string { return l.fleet.Names() }

// List lists once. Items are of types fleet.Judged, as they arrive unless they have to be
// looked at, sorted or cut first, and error: a provider that could not be listed.
func (l *Lister) List(ctx context.Context, watch Observer) *ListResult {
	progress := watch.Progress("listing")
	defer progress.Done()
	one := &listing{env: l.env, watch: watch, selector: l.req.Selector, look: l.req.Look || l.req.Selector.Stuck}
	one.result.Counted = true
	if one.selector.Sort == (selector.Order{}) && !one.look {
		one.streamChosen(ctx, l.fleet)
		return &one.result
	}
	held := one.holdListed(ctx, l.fleet)
	if one.look {
		progress.Update("looking at them")
	}
	one.chooseHeld(ctx, l.fleet, held)
	return &one.result
}

// ListKnown gives everything that can be listed, for completion; a provider that cannot be
// listed completes nothing.
func ListKnown(ctx context.Context, env *Env) ([]sandbox.Sandbox, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return f.Collect(ctx, providers.Query{}).Items, nil
}

// listing is one listing under way.
type listing struct {
	env      *Env
	watch    Observer
	selector selector.Selector
	look     bool
	result   ListResult
}

// providerQuery asks for no more pages than are shown, where the limit may be given on.
func (l *listing) providerQuery(limit int) providers.Query {
	s := l.selector
	return providers.Query{All: s.All, States: s.States, Labels: s.ExactLabels(), Limit: limit}
}

func (l *listing) selectorFacts(of func(sandbox.Sandbox) fleet.Judged) selector.Facts {
	return selector.Facts{Now: l.env.Now(), HidesEnded: l.env.HidesEnded, Stuck: func(s sandbox.Sandbox) (sandbox.Verdict, string) {
		v := of(s).Verdict
		return v.Stuck, v.Reason
	}}
}

// withoutStuckRule is the selector without the stuck rule: what it takes is what is judged.
func (l *listing) withoutStuckRule() selector.Selector {
	s := l.selector
	s.Stuck = false
	return s
}

// streamChosen reports each sandbox that is chosen at once.
func (l *listing) streamChosen(ctx context.Context, f *fleet.Fleet) {
	shown := 0
	for s, err := range f.List(ctx, l.providerQuery(l.selector.Limit)) {
		if err != nil {
			l.watch.Item(err)
			continue
		}
		judged := l.env.judgeRecord(s)
		facts := l.selectorFacts(func(sandbox.Sandbox) fleet.Judged { return judged })
		if l.withoutStuckRule().Judge(s, facts).Verdict != sandbox.True {
			continue
		}
		l.result.Census.Add(judged.Verdict)
		if l.selector.Judge(s, facts).Verdict != sandbox.True {
			continue
		}
		if l.selector.Limit > 0 && shown == l.selector.Limit {
			l.result.Truncated, l.result.Counted = true, false
			return
		}
		shown++
		l.watch.Item(judged)
	}
}

func (l *listing) holdListed(ctx context.Context, f *fleet.Fleet) []sandbox.Sandbox {
	var held []sandbox.Sandbox
	for s, err := range f.List(ctx, l.providerQuery(0)) {
		if err != nil {
			l.watch.Item(err)
			continue
		}
		held = append(held, s)
	}
	return held
}

// chooseHeld judges what was held back, and reports what is chosen of it.
func (l *listing) chooseHeld(ctx context.Context, f *fleet.Fleet, held []sandbox.Sandbox) {
	all := map[sandbox.Ref]fleet.Judged{}
	facts := l.selectorFacts(func(s sandbox.Sandbox) fleet.Judged { return all[s.Ref()] })
	held = slices.DeleteFunc(held, func(s sandbox.Sandbox) bool { return l.withoutStuckRule().Judge(s, facts).Verdict != sandbox.True })
	judged := f.Judge(ctx, held, l.env.Judging(l.look))
	for i, j := range judged {
		all[j.Sandbox.Ref()], held[i] = j, j.Sandbox
		l.result.Census.Add(j.Verdict)
	}
	for _, err := range failedLooks(judged) {
		l.watch.Item(err)
	}
	chosen := l.selector.Apply(held, facts)
	for _, j := range chosen.Selected {
		l.watch.Item(all[j.Sandbox.Ref()])
	}
	l.result.Truncated = chosen.Truncated
}
