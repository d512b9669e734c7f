package cleanup

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// Run is one bulk ending under way.
type Run struct {
	Fleet   *fleet.Fleet
	World   World
	Rule    Rule
	Journal Journal
	Wait    time.Duration // for each end to be seen
	Grace   time.Duration // for a program that can hear TERM
	By      string        // who asks, for the provider's record
	Redact  func(string) string

	Targets []Target

	index map[sandbox.Ref]Target
	tails sync.Map // Ref -> fleet.Part[[]sandbox.LogLine], of what nobody has looked at
}

// Target is one sandbox that a run may end.
type Target struct {
	Item    Item
	Sandbox sandbox.Sandbox
	Seen    *Judgement          // what the survey made of it; nil = it is looked at before anything is asked
	Asked   bool                // a run that was cut off may have asked it to end
	Request *sandbox.EndRequest // the last one that the run has sent before; nil = none is known
	Settled *sandbox.Ending     // its outcome, where nothing has to be asked; nil = it is asked

	unlisted bool // a complete listing did not show it
}

// Targets are what a survey selected.
func (s Survey) Targets() []Target {
	out := make([]Target, 0, len(s.Selected))
	for _, j := range s.Selected {
		out = append(out, Target{Item: itemOf(j), Sandbox: j.Sandbox, Seen: &j})
	}
	return out
}

// Within narrows a survey to a plan that was made before: at most the plan's set
// ends. What the survey keeps now has changed; what it does not see any more is read
// by its id, and if that finds it, it stays: no guard has counted it.
func (s Survey) Within(p Plan) []Target {
	out := make([]Target, 0, len(p.Items))
	for _, item := range p.Items {
		item.Excluded = "" // what another run was kept from is judged anew
		t := Target{Item: item, Sandbox: sandbox.Sandbox{
			Provider: item.Ref.Provider, ID: item.Ref.ID, Name: item.Name, State: item.State, CreatedAt: item.CreatedAt,
		}}
		same := func(j Judgement) bool { return j.Sandbox.Ref() == item.Ref }
		if i := slices.IndexFunc(s.Selected, same); i >= 0 {
			j := s.Selected[i] // a copy: Narrow moves what stands in the survey
			t.Sandbox, t.Seen = j.Sandbox, &j
		} else if i := slices.IndexFunc(s.Kept, same); i >= 0 {
			j := s.Kept[i]
			t.Settled = settled(item.Ref, sandbox.OutcomeChanged, "the rule does not select it any more: "+j.Reason)
			if j.Ground == GroundEnded {
				t.Settled = settled(item.Ref, sandbox.OutcomeAlreadyGone, "it had ended before: "+string(j.Sandbox.State))
			}
		} else if err := s.left(item.Ref.Provider); err != nil {
			t.Settled = settled(item.Ref, sandbox.OutcomeNotAttempted, "its provider could not be listed")
			t.Settled.Err = err
		} else {
			t.Settled = s.calm(item.Ref)
			t.unlisted = t.Settled == nil
		}
		switch {
		case t.unlisted:
			t.Item.Excluded = unlisted
		case t.Settled != nil:
			t.Item.Excluded = t.Settled.Reason
		}
		out = append(out, t)
	}
	return out
}

// unlisted is why a sandbox stays that a plan names and the listing does not show.
const unlisted = "it is there, and the list does not show it: no guard has counted it"

// Narrow makes the survey one of these targets alone, so that the guards speak of
// what a plan can still end.
func (s *Survey) Narrow(targets []Target) {
	goes := map[sandbox.Ref]bool{}
	for _, t := range targets {
		goes[t.Item.Ref] = t.Settled == nil
	}
	s.Selected = slices.DeleteFunc(s.Selected, func(j Judgement) bool { return !goes[j.Sandbox.Ref()] })
	for i := range s.Shares {
		s.Shares[i].Selected = 0
		for _, j := range s.Selected {
			if j.Sandbox.Provider == s.Shares[i].Profile {
				s.Shares[i].Selected++
			}
		}
	}
}

// left is why a profile is left out; nil = it is not.
func (s Survey) left(profile string) error {
	for _, share := range s.Shares {
		if share.Profile == profile {
			return share.Err
		}
	}
	return fault.Usage("the plan names the profile %q, which is not selected", profile)
}

// calm is the outcome where nothing of a profile ends, since it was not looked at;
// nil = it was.
func (s Survey) calm(ref sandbox.Ref) *sandbox.Ending {
	if slices.ContainsFunc(s.Shares, func(share Share) bool { return share.Profile == ref.Provider && share.Calm }) {
		return settled(ref, sandbox.OutcomeChanged, "too little of its provider's quota is in use")
	}
	return nil
}

func settled(ref sandbox.Ref, outcome sandbox.Outcome, reason string) *sandbox.Ending {
	return &sandbox.Ending{Ref: ref, Outcome: outcome, Reason: reason}
}

// Do ends the targets, each re-read just before, written down, asked once, and
// looked at until its end is seen. Each comes out exactly once.
func (r *Run) Do(ctx context.Context) iter.Seq[sandbox.Ending] {
	return func(yield func(sandbox.Ending) bool) {
		r.World.endsFailed = r.Fleet.EndsFailed
		r.lookAgain(ctx)
		r.index = make(map[sandbox.Ref]Target, len(r.Targets))
		var asked []sandbox.Sandbox
		for _, t := range r.Targets {
			r.index[t.Item.Ref] = t
			if t.Settled == nil {
				asked = append(asked, t.Sandbox)
			}
		}
		for _, t := range r.Targets {
			if t.Settled != nil && !r.tell(*t.Settled, yield) {
				return
			}
		}
		for e := range safety.End(ctx, r.Fleet, asked, safety.Options{Verb: safety.VerbCleanup, How: r.how(), Protected: r.World.Protected}) {
			if !r.tell(e, yield) {
				return
			}
		}
	}
}

func (r *Run) how() fleet.EndOptions {
	return fleet.EndOptions{
		Delete: r.Rule.Delete, Grace: r.Grace, Wait: r.Wait, By: r.By, Origin: fleet.EndOrigin{Journaled: true},
		Recheck: fleet.Recheck{Prepare: r.prepare, AlreadyAsked: r.alreadyAsked, Judge: r.recheck},
		Record: fleet.EndRecord{
			Earlier:       func(ref sandbox.Ref) *sandbox.EndRequest { return r.index[ref].Request },
			BeforeRequest: r.intend, AfterRequest: r.answered,
		},
	}
}

// tell writes an outcome down and hands it on. A journal that fails now takes
// nothing back: what was seen to end has ended.
func (r *Run) tell(e sandbox.Ending, yield func(sandbox.Ending) bool) bool {
	_ = r.Journal.Append(EntryResult, resultOf(e, r.Redact)) // Finish reports it
	return yield(e)
}

// answered writes down what a request was answered. A journal that fails now takes
// nothing back, and then a resume takes the request for one without an answer.
func (r *Run) answered(ref sandbox.Ref, request sandbox.EndRequest) {
	_ = r.Journal.Append(EntryAnswer, Answer{Ref: ref, Request: *redacted(request, r.Redact)}) // Finish reports it
}

// alreadyAsked says that a request of this run, from before it was cut off, is at work.
func (r *Run) alreadyAsked(now sandbox.Sandbox) bool {
	return r.index[now.Ref()].Asked && now.State == sandbox.StateTerminating
}

// recheck judges what was read just before the end: anything that is not as planned
// keeps the sandbox.
func (r *Run) recheck(now sandbox.Sandbox) (sandbox.Outcome, string) {
	t := r.index[now.Ref()]
	if why := t.Item.holds(now); why != "" {
		return sandbox.OutcomeChanged, why
	}
	if p := r.World.profile(now.Provider); t.Item.Owned != "" && t.Item.Owned == p.OwnedRule && !p.owns(now.Labels) {
		return sandbox.OutcomeChanged, "it is not ours any more: it lacks " + p.OwnedRule
	}
	if t.unlisted {
		return sandbox.OutcomeChanged, unlisted
	}
	j := r.Rule.again(r.World, now, r.World.Now(), t.Seen)
	switch {
	case j.Ground != GroundNone:
		return sandbox.OutcomeChanged, j.Reason
	case j.needsLook:
		return sandbox.OutcomeNotAttempted, "not asked: nobody could look whether it is at work"
	}
	return "", ""
}

// lookAgain judges anew what no survey of this process has seen. A run that is gone
// on with may be hours old, and what it selected may be at work by now.
func (r *Run) lookAgain(ctx context.Context) {
	var all sync.WaitGroup
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Settled != nil || t.Seen != nil || t.unlisted {
			continue
		}
		all.Go(func() {
			now, err := r.Fleet.Get(ctx, t.Item.Ref)
			if err != nil {
				return // the read just before the end says what is to be made of it
			}
			j := r.Rule.judge(r.World, now, r.World.Now(), nil)
			if j.needsLook {
				o := r.Fleet.ObserveLife(ctx, now)
				j = r.Rule.judge(r.World, now, r.World.Now(), &o)
			}
			t.Seen = &j
		})
	}
	all.Wait()
}

// again judges a sandbox by a fresh record and what was seen of it before.
func (r Rule) again(w World, now sandbox.Sandbox, at time.Time, before *Judgement) Judgement {
	if before == nil || before.seen == nil {
		return r.judge(w, now, at, nil)
	}
	o := *before.seen
	o.Sandbox = now.WithActivity(o.Sandbox.LastActivityAt, o.Sandbox.ActivityBasis)
	return r.judge(w, now, at, &o)
}

// prepare reads the last output of what nobody has looked at, before the sandbox is
// judged for the last time: an end may destroy it.
func (r *Run) prepare(ctx context.Context, s sandbox.Sandbox) {
	if t := r.index[s.Ref()]; t.Seen != nil && t.Seen.seen != nil {
		return
	}
	logs := r.Fleet.Tail(ctx, s.Ref(), tailKept)
	if fault.KindOf(logs.Err) == fault.KindUnsupported {
		logs.Err = nil
	}
	r.tails.Store(s.Ref(), logs)
}

// intend writes down what is about to be ended. Nothing is asked without it.
func (r *Run) intend(ctx context.Context, s sandbox.Sandbox) error {
	var logs fleet.Part[[]sandbox.LogLine]
	if tail, ok := r.tails.LoadAndDelete(s.Ref()); ok {
		logs, _ = tail.(fleet.Part[[]sandbox.LogLine])
	} else if t := r.index[s.Ref()]; t.Seen != nil && t.Seen.seen != nil {
		logs = t.Seen.seen.Logs
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.Journal.Append(EntryIntent, intentOf(s, logs, r.Rule.Delete, r.Redact))
}
