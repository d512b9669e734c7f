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
	tails sync.Map // Ref -> fleet.Part[[]sandbox.LogLine]: the last output of sandboxes that no survey has observed
	looks sync.Map // Ref -> fleet.Observation: the look just before the end, for a condition over figures
}

// EndTargets ends the targets: each is read again just before, recorded, its end requested
// once, and awaited until it is seen. Each comes out exactly once; those that need no request first.
func (r *Run) EndTargets(ctx context.Context) iter.Seq[sandbox.Ending] {
	return func(yield func(sandbox.Ending) bool) {
		r.Environment.endsFailed = r.Fleet.EndsFailed
		r.judgeUnseen(ctx)
		r.index = make(map[sandbox.Ref]Target, len(r.Targets))
		var toEnd []sandbox.Sandbox
		var settled []sandbox.Ending
		for _, t := range r.Targets {
			r.index[t.Item.Ref] = t
			if t.Settled == nil {
				toEnd = append(toEnd, t.Sandbox)
			} else {
				settled = append(settled, *t.Settled)
			}
		}
		for _, e := range settled {
			_ = r.Record.Result(e) // the conclusion of the journal reports an error
			if !yield(e) {
				return
			}
		}
		how := safety.Options{
			Verb: safety.VerbCleanup, How: r.endOptions(), Protected: r.Environment.Protected, Record: r.Record, Describe: r.addLastOutput,
		}
		for e := range safety.End(ctx, r.Fleet, toEnd, how) {
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
		Recheck: fleet.Recheck{Prepare: r.prepareTarget, Judge: r.recheckTarget, AlreadyAsked: r.alreadyAsked, MayRepeat: r.mayRepeat},
	}
}

// alreadyAsked reports whether the interrupted run before has requested this end: it is under way.
func (r *Run) alreadyAsked(now sandbox.Sandbox) bool {
	return r.index[now.Ref()].Asked && now.State == sandbox.StateTerminating
}

// recheckTarget judges the read just before the end: any difference from the plan keeps the
// sandbox.
func (r *Run) recheckTarget(now sandbox.Sandbox) (sandbox.Outcome, string) {
	t := r.index[now.Ref()]
	if why := changedSince(t.Item, now); why != "" {
		return sandbox.OutcomeChanged, why
	}
	if why := r.whyNotOurs(t, now); why != "" {
		return sandbox.OutcomeChanged, why
	}
	before := t.Seen // by the survey, else by the look of prepareTarget
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

// whyNotOurs is why a target may not be ended by this run, active or not; "" = it may.
func (r *Run) whyNotOurs(t Target, now sandbox.Sandbox) string {
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
	return changedSince(t.Item, before) == "" && r.whyNotOurs(t, now) == "" && (r.Environment.Protected == nil || r.Environment.Protected(now) == "")
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

// addLastOutput adds the last output of a sandbox that is about to be ended to its record.
func (r *Run) addLastOutput(i *runs.Intent) {
	if tail, ok := r.tails.LoadAndDelete(i.Ref); ok {
		logs, _ := tail.(fleet.Part[[]sandbox.LogLine])
		i.KeepLines(logs)
	} else if t := r.index[i.Ref]; t.Seen != nil && t.Seen.observation != nil {
		i.KeepLines(t.Seen.observation.Logs)
	}
}
