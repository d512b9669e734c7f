package cleanup

import (
	"context"
	"errors"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// keepBehindSuspectedEdges keeps sandboxes that are selected only because nothing inside them answers, where the edge of
// their provider, through which they were asked, is suspected: it may answer so for sandboxes that work.
func (r Rule) keepBehindSuspectedEdges(ctx context.Context, f *fleet.Fleet, w Environment, judged []Judgement) {
	all := make([]fleet.Answers, len(judged))
	for i, j := range judged {
		all[i] = fleet.Answers{Ref: j.Sandbox.Ref(), State: j.Sandbox.State, Verdict: j.answers}
	}
	suspected := f.SuspectedEdges(ctx, all)
	for i := range judged {
		j := &judged[i]
		if why := suspected[j.Sandbox.Provider]; why != nil && j.Selected() && r.selectedByProbeAlone(w, *j) {
			j.failed, j.observation = why, nil
			j.keepFor("health", KeepActivityUnknown, errors.Unwrap(why).Error())
		}
	}
}

// selectedByProbeAlone says that a sandbox is selected only because nothing inside it answers: without that answer its
// activity would not be known to be false.
func (r Rule) selectedByProbeAlone(w Environment, j Judgement) bool {
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
