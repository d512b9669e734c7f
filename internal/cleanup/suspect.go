package cleanup

import (
	"context"
	"errors"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// leastSuspect is how many sandboxes of a profile must be dead, and none alive, for the edge in front of them to be
// suspected.
const leastSuspect = 3

// controls is how many other running sandboxes are then probed: one that answers clears the edge.
const controls = 3

// suspectEdges keeps what stands only on the answer that nothing inside it answers, where each sandbox of a profile that
// was asked gave it: then the edge in front of them may be broken, and not they.
func (r Rule) suspectEdges(ctx context.Context, f *fleet.Fleet, w Environment, judged []Judgement) {
	for _, p := range w.Profiles {
		if !p.Remote {
			continue
		}
		dead, alive := 0, 0
		var others []sandbox.Ref
		for _, j := range judged {
			switch {
			case j.Sandbox.Provider != p.Name || j.Sandbox.State != sandbox.StateRunning:
			case j.answers == sandbox.False:
				dead++
			case j.answers == sandbox.True:
				alive++
			case len(others) < controls:
				others = append(others, j.Sandbox.Ref())
			}
		}
		if dead < leastSuspect || alive > 0 || anyAnswers(ctx, f, others) {
			continue
		}
		why := fault.New(fault.KindUnavailable, "all %d that were asked give the same answer, that nothing inside answers: its edge may be broken, and not they", dead).At(p.Name, "probe")
		for i := range judged {
			if j := &judged[i]; j.Sandbox.Provider == p.Name && j.Selected() && r.standsOnProbe(w, *j) {
				j.failed, j.observation = why, nil
				j.keepFor("health", KeepActivityUnknown, errors.Unwrap(why).Error())
			}
		}
	}
}

// anyAnswers reports whether one of these sandboxes answers a probe.
func anyAnswers(ctx context.Context, f *fleet.Fleet, refs []sandbox.Ref) bool {
	for _, ref := range refs {
		if h, err := f.Probe(ctx, ref); err == nil && h.Verdict == sandbox.True {
			return true
		}
	}
	return false
}

// standsOnProbe says that a sandbox is selected only since nothing inside it answers.
func (r Rule) standsOnProbe(w Environment, j Judgement) bool {
	if j.observation == nil || j.answers != sandbox.False {
		return false
	}
	if r.Unhealthy {
		return true
	}
	limits := w.Thresholds(j.Sandbox)
	sig := j.observation.Signals(limits)
	sig.Answers = ""
	return !r.IgnoreActivity && triage.Judge(j.Sandbox, sig, limits, w.Now()).Activity != sandbox.False
}
