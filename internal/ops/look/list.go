package look

import (
	"context"
	"slices"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

// ListRequest says which sandboxes are listed.
type ListRequest struct {
	Selector selector.Selector
	Look     bool // ask those that may be stuck themselves
	Live     bool // it is listed again and again, for a screen
}

// ListResult is what a listing came to, beside its items.
type ListResult struct {
	Census    Census // of everything that the selectors take, --stuck apart
	Truncated bool   // there are more than the limit allows
	Shown     int    // that were reported
	Ended     int    // left out because they have ended, as far as they were listed
	// UnknownMatches counts by reason what the condition leaves unknown, and so does not select.
	UnknownMatches map[string]int
	// Unconfirmed are ends that were requested and not acknowledged, where --all asks for what has ended, too; UnconfirmedErr
	// is why they are not known.
	Unconfirmed    []recall.UnconfirmedEnd
	UnconfirmedErr error
	// Unlisted are the sandboxes of the last complete listing that this one does not have, without an end on record. What
	// is wrong with the list was reported as an item.
	Unlisted []recall.UnlistedSandbox
}

// Lister lists sandboxes, again and again with --watch.
type Lister struct {
	env   *ops.Env
	fleet *fleet.Fleet
	req   ListRequest
}

// NewLister opens the fleet that is listed.
func NewLister(ctx context.Context, env *ops.Env, req ListRequest) (*Lister, error) {
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
func (l *Lister) List(ctx context.Context, watch ops.Observer) *ListResult {
	progress := watch.Progress("listing")
	defer progress.Done()
	one := &listing{env: l.env, watch: watch, progress: progress, selector: l.req.Selector, look: l.req.Look || l.req.Selector.Stuck, live: l.req.Live}
	one.result.UnknownMatches = map[string]int{}
	if one.selector.Limit > 0 && one.selector.Sort == (selector.Order{}) { // the same rows each time; no API lists the newest first
		one.selector.Sort = selector.Order{Key: "age"}
	}
	if one.selector.Sort == (selector.Order{}) && !one.look && !one.selector.Where.NeedsLook() {
		one.streamChosen(ctx, l.fleet)
	} else {
		one.chooseHeld(ctx, l.fleet, one.holdListed(ctx, l.fleet))
	}
	if l.req.Selector.All {
		one.result.Unconfirmed, one.result.UnconfirmedErr = recall.UnconfirmedEnds(ctx, l.fleet)
	}
	one.result.Unlisted = recall.ReadUnlisted(ctx, l.env, l.fleet)
	for _, err := range recall.UnlistedErrors(l.env, one.result.Unlisted) {
		watch.Item(err)
	}
	return &one.result
}

// ListKnown gives what is known of all sandboxes, for completion: a provider that is slower than
// the limit has its last listing.
func ListKnown(ctx context.Context, env *ops.Env, limit time.Duration) ([]sandbox.Sandbox, error) {
	f, err := env.Fleet(ctx)
	if err != nil {
		return nil, err
	}
	return f.ListNames(ctx, limit), nil
}

// listing is one listing under way.
type listing struct {
	env      *ops.Env
	watch    ops.Observer
	progress ops.Progress
	selector selector.Selector
	look     bool
	live     bool
	result   ListResult
}

func (l *listing) providerQuery() providers.Query {
	s := l.selector
	return providers.Query{All: s.All, States: s.States, Labels: s.ExactLabels(), Live: l.live}
}

func (l *listing) selectorFacts(of func(sandbox.Sandbox) fleet.Judged) selector.Facts {
	return selector.Facts{Now: l.env.Now(), Judged: func(s sandbox.Sandbox) (triage.Verdict, *selector.Figures) {
		j := of(s)
		return j.Verdict, j.Figures
	}}
}

// takes says that the selector takes a sandbox, the stuck rule apart: such a sandbox is judged.
// With mayLook, it also takes one of which only a look can decide the condition. It counts what
// is left out because it has ended, and what the condition leaves undecided.
func (l *listing) takes(s sandbox.Sandbox, facts selector.Facts, mayLook bool) bool {
	without := l.selector
	without.Stuck = false
	m := without.Judge(s, facts)
	switch {
	case m.Filter == selector.FilterEnded && !l.selector.Stuck: // what has ended is not stuck
		l.result.Ended++
	case m.Verdict == sandbox.Unknown && m.Filter == selector.FilterWhere:
		if mayLook && l.selector.Where.NeedsLook() && s.State == sandbox.StateRunning {
			return true
		}
		l.result.UnknownMatches[m.Reason]++
	}
	return m.Verdict == sandbox.True
}

// streamChosen reports each sandbox that is chosen at once.
func (l *listing) streamChosen(ctx context.Context, f *fleet.Fleet) {
	listed := 0
	var judged fleet.Judged // one for all of them: there may be ten thousand
	facts := l.selectorFacts(func(sandbox.Sandbox) fleet.Judged { return judged })
	for s, err := range f.List(ctx, l.providerQuery()) {
		if err != nil {
			l.watch.Item(err)
			continue
		}
		listed++
		l.progress.Update(ops.GroupedNumber(listed) + " so far")
		judged, facts.Now = l.env.JudgeRecord(s), l.env.Now()
		if !l.takes(s, facts, false) {
			continue
		}
		l.result.Census.Add(judged.Sandbox.Provider, judged.Verdict)
		if l.selector.Stuck && l.selector.Judge(s, facts).Verdict != sandbox.True { // takes leaves this rule out
			continue
		}
		l.result.Shown++
		l.watch.Item(&judged)
	}
}

func (l *listing) holdListed(ctx context.Context, f *fleet.Fleet) []sandbox.Sandbox {
	var held []sandbox.Sandbox
	for s, err := range f.List(ctx, l.providerQuery()) {
		if err != nil {
			l.watch.Item(err)
			continue
		}
		held = append(held, s)
		l.progress.Update(ops.GroupedNumber(len(held)) + " so far")
	}
	return held
}

// chooseHeld judges what was held back, and reports what is chosen of it.
func (l *listing) chooseHeld(ctx context.Context, f *fleet.Fleet, held []sandbox.Sandbox) {
	all := map[sandbox.Ref]fleet.Judged{}
	byRecord := l.selectorFacts(l.env.JudgeRecord)
	beside := make([]fleet.Answers, len(held))
	for i, s := range held {
		beside[i] = fleet.Answers{Ref: s.Ref(), State: s.State}
	}
	held = slices.DeleteFunc(held, func(s sandbox.Sandbox) bool { return !l.takes(s, byRecord, true) })
	how := l.env.Judging(l.look, l.progress)
	how.Beside = beside
	if where := l.selector.Where; where.NeedsLook() {
		how.Open = func(j fleet.Judged) bool {
			return j.Sandbox.State == sandbox.StateRunning && where.Judge(j.Sandbox, byRecord) == sandbox.Unknown
		}
	}
	judged := f.Judge(ctx, held, how)
	seen := l.selectorFacts(func(s sandbox.Sandbox) fleet.Judged { return all[s.Ref()] })
	for i, j := range judged {
		all[j.Sandbox.Ref()], held[i] = j, j.Sandbox
		if where := l.selector.Where; where.IsZero() || where.Judge(j.Sandbox, seen) == sandbox.True {
			l.result.Census.Add(j.Sandbox.Provider, j.Verdict)
		}
	}
	for _, err := range ops.FailedLooks(judged) {
		l.watch.Item(err)
	}
	chosen := l.selector.Apply(held, seen)
	l.result.Shown = len(chosen.Selected)
	for _, j := range chosen.Selected {
		one := all[j.Sandbox.Ref()]
		l.watch.Item(&one)
	}
	for _, j := range chosen.Unknown {
		if j.Match.Filter == selector.FilterWhere {
			l.result.UnknownMatches[j.Match.Reason]++
		}
	}
	l.result.Truncated = chosen.Truncated
}
