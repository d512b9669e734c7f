// Package cleanup ends many sandboxes by rule, safely enough for a cron line: it lists the
// complete fleet, gives a reason for each sandbox that stays or goes, refuses as a whole
// where a guard refuses, records each end before it is requested, and reports no end that
// was not seen.
//
// Whatever is unknown keeps a sandbox and is counted: its age, its activity, an incomplete
// listing. Wire formats, output and file formats do not belong here; the fleet ends and
// verifies a single sandbox.
package cleanup

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// Run ends many sandboxes.
type Run struct {
	Fleet       *fleet.Fleet
	Environment Environment
	Rule        Rule
	Record      *runs.Writer
	Wait        time.Duration // for each end to be seen
	Grace       time.Duration // for a program that handles TERM
	By          string        // the operator, for the provider's record

	Targets []Target

	index map[sandbox.Ref]Target
	tails sync.Map // Ref -> fleet.Part[[]sandbox.LogLine], of sandboxes that no survey has observed
	looks sync.Map // Ref -> fleet.Observation just before the end, for a condition over figures
}

// Target is one sandbox that a run may end.
type Target struct {
	Item    runs.Item
	Sandbox sandbox.Sandbox
	Seen    *Judgement          // by the survey; nil = it is judged before its end is requested
	Asked   bool                // an interrupted run may have requested its end
	Request *sandbox.EndRequest // the last request of the run before; nil = none is known
	Settled *sandbox.Ending     // its outcome, where its end need not be requested; nil = it is requested

	unlisted bool // a complete listing did not contain it
}

// Targets are the sandboxes that a survey selected.
func (s Survey) Targets() []Target {
	out := make([]Target, 0, len(s.Selected))
	for _, j := range s.Selected {
		out = append(out, Target{Item: newItem(j), Sandbox: j.Sandbox, Seen: &j})
	}
	return out
}

// Within limits a survey to an earlier plan: only sandboxes of the plan end. What the
// survey keeps now has changed. What it does not contain is read by its id, and stays if it
// exists, because no guard has counted it.
func (s Survey) Within(p Plan) []Target {
	out := make([]Target, 0, len(p.Items))
	for _, item := range p.Items {
		item.Excluded = "" // a sandbox that another run excluded is judged anew
		t := Target{Item: item, Sandbox: sandbox.Sandbox{
			Provider: item.Ref.Provider, ID: item.Ref.ID, Name: item.Name, State: item.State, CreatedAt: item.CreatedAt,
		}}
		same := func(j Judgement) bool { return j.Sandbox.Ref() == item.Ref }
		if i := slices.IndexFunc(s.Selected, same); i >= 0 {
			j := s.Selected[i] // a copy: Narrow moves the elements of the survey
			t.Sandbox, t.Seen = j.Sandbox, &j
		} else if i := slices.IndexFunc(s.Kept, same); i >= 0 {
			j := s.Kept[i]
			t.Settled = settledEnding(item.Ref, sandbox.OutcomeChanged, "the rule no longer selects it: "+j.Reason)
			if j.KeepReason == KeepEnded {
				t.Settled = settledEnding(item.Ref, sandbox.OutcomeAlreadyGone, "it had ended before: "+string(j.Sandbox.State))
			}
		} else if err := s.leftOutError(item.Ref.Provider); err != nil {
			t.Settled = settledEnding(item.Ref, sandbox.OutcomeNotAttempted, "its provider could not be listed")
			t.Settled.Err = err
		} else {
			t.Settled = s.belowQuotaEnding(item.Ref)
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

// unlisted is why a sandbox stays that a plan names and the listing does not contain.
const unlisted = "it exists, but the listing does not show it, so no guard has counted it"

// Narrow limits the survey to these targets, so that the guards count what a plan can still
// end.
func (s *Survey) Narrow(targets []Target) {
	goes := map[sandbox.Ref]bool{}
	for _, t := range targets {
		goes[t.Item.Ref] = t.Settled == nil
	}
	s.keepSelected(func(j Judgement) bool { return goes[j.Sandbox.Ref()] })
}

// Refuse keeps what its provider would refuse to end.
func (s *Survey) Refuse(refused map[sandbox.Ref]string) {
	for i := range s.Selected {
		j := &s.Selected[i]
		if why := refused[j.Sandbox.Ref()]; why != "" {
			j.keepFor("rehearsal", KeepRefused, why)
			s.Kept = append(s.Kept, *j)
		}
	}
	s.keepSelected(Judgement.Selected)
}

// keepSelected drops the others from what is selected, and counts what is left.
func (s *Survey) keepSelected(goes func(Judgement) bool) {
	s.Selected = slices.DeleteFunc(s.Selected, func(j Judgement) bool { return !goes(j) })
	for i := range s.Shares {
		s.Shares[i].Selected = 0
		for _, j := range s.Selected {
			if j.Sandbox.Provider == s.Shares[i].Profile {
				s.Shares[i].Selected++
			}
		}
	}
}

// leftOutError is why a profile is left out; nil = it is not.
func (s Survey) leftOutError(profile string) error {
	for _, share := range s.Shares {
		if share.Profile == profile {
			return share.Err
		}
	}
	return fault.Usage("the plan names the profile %q, which is not selected", profile)
}

// belowQuotaEnding is the outcome where nothing of a profile ends because it uses little of
// its quota; nil = the profile was surveyed.
func (s Survey) belowQuotaEnding(ref sandbox.Ref) *sandbox.Ending {
	if slices.ContainsFunc(s.Shares, func(share Share) bool { return share.Profile == ref.Provider && share.BelowQuota }) {
		return settledEnding(ref, sandbox.OutcomeChanged, "its provider's quota is not full enough")
	}
	return nil
}

func settledEnding(ref sandbox.Ref, outcome sandbox.Outcome, reason string) *sandbox.Ending {
	return &sandbox.Ending{Ref: ref, Outcome: outcome, Reason: reason}
}

// EndTargets ends the targets: each is read again just before, recorded, its end requested
// once, and awaited until it is seen. Each comes out exactly once.
func (r *Run) EndTargets(ctx context.Context) iter.Seq[sandbox.Ending] {
	return func(yield func(sandbox.Ending) bool) {
		r.Environment.endsFailed = r.Fleet.EndsFailed
		r.judgeUnseen(ctx)
		r.index = make(map[sandbox.Ref]Target, len(r.Targets))
		var asked []sandbox.Sandbox
		for _, t := range r.Targets {
			r.index[t.Item.Ref] = t
			if t.Settled == nil {
				asked = append(asked, t.Sandbox)
			}
		}
		for _, t := range r.Targets {
			if t.Settled == nil {
				continue
			}
			_ = r.Record.Result(*t.Settled) // the end of the journal reports it
			if !yield(*t.Settled) {
				return
			}
		}
		how := safety.Options{
			Verb: safety.VerbCleanup, How: r.endOptions(), Protected: r.Environment.Protected, Record: r.Record, Describe: r.keepLines,
		}
		for e := range safety.End(ctx, r.Fleet, asked, how) {
			if !yield(e) {
				return
			}
		}
	}
}

func (r *Run) endOptions() fleet.EndOptions {
	earlier := map[sandbox.Ref]*sandbox.EndRequest{}
	for ref, target := range r.index {
		earlier[ref] = target.Request
	}
	return fleet.EndOptions{
		Delete: r.Rule.Delete, Grace: r.Grace, Wait: r.Wait, By: r.By, Earlier: earlier,
		Recheck: fleet.Recheck{Prepare: r.prepareTarget, Judge: r.recheckTarget, AlreadyAsked: func(now sandbox.Sandbox) bool {
			return r.index[now.Ref()].Asked && now.State == sandbox.StateTerminating
		}, MayRepeat: r.mayRepeat},
	}
}

// recheckTarget judges the read just before the end: any difference from the plan keeps the
// sandbox.
func (r *Run) recheckTarget(now sandbox.Sandbox) (sandbox.Outcome, string) {
	t := r.index[now.Ref()]
	if why := changedSince(t.Item, now); why != "" {
		return sandbox.OutcomeChanged, why
	}
	if why := r.disowned(t, now); why != "" {
		return sandbox.OutcomeChanged, why
	}
	before := t.Seen
	if look, has := r.looks.LoadAndDelete(now.Ref()); has {
		o, _ := look.(fleet.Observation)
		before = &Judgement{observation: &o}
	}
	j := r.Rule.judgeAgain(r.Environment, now, r.Environment.Now(), before)
	switch {
	case j.KeepReason != KeepNone:
		return sandbox.OutcomeChanged, j.Reason
	case j.needsLook:
		return sandbox.OutcomeNotAttempted, "not requested: sbx could not check whether it is active"
	}
	return "", ""
}

// disowned is why a target does not belong to the run any more, whatever it does; "" = it does.
func (r *Run) disowned(t Target, now sandbox.Sandbox) string {
	if p := r.Environment.profileNamed(now.Provider); t.Item.Owned != "" && t.Item.Owned == p.OwnedRule && !p.ownsSandbox(now.Labels) {
		return "it is no longer yours: it lacks " + p.OwnedRule
	}
	if t.unlisted {
		return unlisted
	}
	return ""
}

// mayRepeat reports whether a target is still what was asked to end, apart from its state, and
// nothing protects it.
func (r *Run) mayRepeat(now sandbox.Sandbox) bool {
	t, before := r.index[now.Ref()], now
	before.State = t.Item.State
	return changedSince(t.Item, before) == "" && r.disowned(t, now) == "" && (r.Environment.Protected == nil || r.Environment.Protected(now) == "")
}

// judgeUnseen judges the targets that no survey of this process has judged. A resumed run
// may be hours old, and its targets may be active by now.
func (r *Run) judgeUnseen(ctx context.Context) {
	var all sync.WaitGroup
	for i := range r.Targets {
		t := &r.Targets[i]
		if t.Settled != nil || t.Seen != nil || t.unlisted {
			continue
		}
		all.Go(func() {
			now, err := r.Fleet.Get(ctx, t.Item.Ref)
			if err != nil {
				return // the read just before the end decides
			}
			j := r.Rule.judgeSandbox(r.Environment, now, r.Environment.Now(), nil)
			if j.needsLook {
				o := r.Fleet.ObserveLife(ctx, now)
				j = r.Rule.judgeSandbox(r.Environment, now, r.Environment.Now(), &o)
			}
			t.Seen = &j
		})
	}
	all.Wait()
}

// judgeAgain judges a sandbox by a fresh read and the observations before.
func (r Rule) judgeAgain(w Environment, now sandbox.Sandbox, at time.Time, before *Judgement) Judgement {
	if before == nil || before.observation == nil {
		return r.judgeSandbox(w, now, at, nil)
	}
	o := *before.observation
	o.Sandbox = now.WithActivity(o.Sandbox.LastActivityAt, o.Sandbox.ActivityBasis)
	return r.judgeSandbox(w, now, at, &o)
}

// prepareTarget is called just before the last read of a sandbox. Figures change within seconds,
// so a condition over them is judged by a new look.
func (r *Run) prepareTarget(ctx context.Context, s sandbox.Sandbox) {
	r.readTail(ctx, s)
	if r.Rule.Selector.Where.NeedsLook() && s.State == sandbox.StateRunning {
		r.looks.Store(s.Ref(), r.Fleet.ObserveLife(ctx, s))
	}
}

// readTail reads the last output of a sandbox that was not observed, before it is judged
// for the last time: an end may destroy the output.
func (r *Run) readTail(ctx context.Context, s sandbox.Sandbox) {
	if t := r.index[s.Ref()]; t.Seen != nil && t.Seen.observation != nil {
		return
	}
	logs := r.Fleet.Tail(ctx, s.Ref(), runs.KeptLines)
	if fault.KindOf(logs.Err) == fault.KindUnsupported {
		logs.Err = nil
	}
	r.tails.Store(s.Ref(), logs)
}

// keepLines keeps the last output of a sandbox that is about to be ended.
func (r *Run) keepLines(i *runs.Intent) {
	if tail, ok := r.tails.LoadAndDelete(i.Ref); ok {
		logs, _ := tail.(fleet.Part[[]sandbox.LogLine])
		i.KeepLines(logs)
	} else if t := r.index[i.Ref]; t.Seen != nil && t.Seen.observation != nil {
		i.KeepLines(t.Seen.observation.Logs)
	}
}
