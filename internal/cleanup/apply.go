package cleanup

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
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
	Seen    *Judgement      // what the survey made of it; nil = it is judged by Item alone
	Asked   bool            // a run that was cut off may have asked it to end
	Settled *sandbox.Ending // its outcome, where nothing has to be asked; nil = it is asked
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
// ends. What the survey keeps now has changed; what it does not see any more is left
// to be looked up by its id.
func (s Survey) Within(p Plan) []Target {
	out := make([]Target, 0, len(p.Items))
	for _, item := range p.Items {
		t := Target{Item: item, Sandbox: sandbox.Sandbox{
			Provider: item.Ref.Provider, ID: item.Ref.ID, Name: item.Name, State: item.State, CreatedAt: item.CreatedAt,
		}}
		same := func(j Judgement) bool { return j.Sandbox.Ref() == item.Ref }
		if i := slices.IndexFunc(s.Selected, same); i >= 0 {
			t.Sandbox, t.Seen = s.Selected[i].Sandbox, &s.Selected[i]
		} else if i := slices.IndexFunc(s.Kept, same); i >= 0 {
			j := s.Kept[i]
			t.Settled = settled(item.Ref, sandbox.OutcomeChanged, "the rule does not select it any more: "+j.Reason)
			if j.Ground == GroundEnded {
				t.Settled = settled(item.Ref, sandbox.OutcomeAlreadyGone, "it had ended before: "+string(j.Sandbox.State))
			}
		} else if err := s.left(item.Ref.Provider); err != nil {
			t.Settled = settled(item.Ref, sandbox.OutcomeNotAttempted, "its provider could not be listed")
			t.Settled.Err = err
		}
		out = append(out, t)
	}
	return out
}

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

func settled(ref sandbox.Ref, outcome sandbox.Outcome, reason string) *sandbox.Ending {
	return &sandbox.Ending{Ref: ref, Outcome: outcome, Reason: reason}
}

// Do ends the targets, each re-read just before, written down, asked once, and
// looked at until its end is seen. Each comes out exactly once.
func (r *Run) Do(ctx context.Context) iter.Seq[sandbox.Ending] {
	r.index = make(map[sandbox.Ref]Target, len(r.Targets))
	var asked []sandbox.Sandbox
	for _, t := range r.Targets {
		r.index[t.Item.Ref] = t
		if t.Settled == nil {
			asked = append(asked, t.Sandbox)
		}
	}
	return func(yield func(sandbox.Ending) bool) {
		for _, t := range r.Targets {
			if t.Settled != nil && !r.tell(*t.Settled, yield) {
				return
			}
		}
		for e := range r.Fleet.Terminate(ctx, asked, r.how()) {
			if !r.tell(e, yield) {
				return
			}
		}
	}
}

func (r *Run) how() fleet.EndOptions {
	return fleet.EndOptions{
		Delete: r.Rule.Delete, Grace: r.Grace, Wait: r.Wait, By: r.By, Precheck: true,
		Prepare: r.prepare, Still: r.still, Before: r.intend,
	}
}

// tell writes an outcome down and hands it on. A journal that fails now takes
// nothing back: what was seen to end has ended.
func (r *Run) tell(e sandbox.Ending, yield func(sandbox.Ending) bool) bool {
	_ = r.Journal.Append(EntryResult, resultOf(e, r.Redact)) // Finish reports it
	return yield(e)
}

// still judges what was read just before the end: anything that is not as planned
// keeps the sandbox.
func (r *Run) still(now sandbox.Sandbox) (sandbox.Outcome, string) {
	t := r.index[now.Ref()]
	if why := r.World.Protected(now); why != "" {
		return sandbox.OutcomeSkipped, why
	}
	if t.Asked && now.State == sandbox.StateTerminating {
		return "", ""
	}
	if why := t.Item.holds(now); why != "" {
		return sandbox.OutcomeChanged, why
	}
	if t.Seen == nil {
		return "", ""
	}
	j := r.Rule.again(r.World, now, *t.Seen)
	if j.Ground != GroundNone {
		return sandbox.OutcomeChanged, j.Reason
	}
	return "", ""
}

// again judges a sandbox by a fresh record and what the survey had seen of it.
func (r Rule) again(w World, now sandbox.Sandbox, before Judgement) Judgement {
	if before.seen == nil {
		return r.judge(w, now, w.Now(), nil)
	}
	o := *before.seen
	last := o.Sandbox.LastActivityAt
	o.Sandbox = now
	if last.After(now.LastActivityAt) {
		o.Sandbox.LastActivityAt = last
	}
	return r.judge(w, now, w.Now(), &o)
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
