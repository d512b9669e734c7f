package cleanup

import (
	"context"
	"errors"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// suspectEdges keeps what stands only on the answer that nothing inside it answers, where the edge that gave it is
// suspected.
func (r Rule) suspectEdges(ctx context.Context, f *fleet.Fleet, w Environment, judged []Judgement) {
	all := make([]fleet.Answers, len(judged))
	for i, j := range judged {
		all[i] = fleet.Answers{Ref: j.Sandbox.Ref(), State: j.Sandbox.State, Verdict: j.answers}
	}
	suspected := f.SuspectedEdges(ctx, all)
	for i := range judged {
		j := &judged[i]
		if why := suspected[j.Sandbox.Provider]; why != nil && j.Selected() && r.standsOnProbe(w, *j) {
			j.failed, j.observation = why, nil
			j.keepFor("health", KeepActivityUnknown, errors.Unwrap(why).Error())
		}
	}
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
