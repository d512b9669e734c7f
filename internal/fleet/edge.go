package fleet

import (
	"context"
	"maps"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// leastDead is how many sandboxes of a profile must be dead, and none alive, for the edge in front of them to be
// suspected.
const leastDead = 3

// controls is how many other running sandboxes are then probed: one that answers clears the edge.
const controls = 3

// answersCount counts the answers of the running sandboxes of one profile.
type answersCount struct {
	dead, alive int
	others      []sandbox.Ref // that were not asked, at most controls
}

// Answers is what a running sandbox answered; "" = it was not asked. It has no more of the record: there may be ten
// thousand of them.
type Answers struct {
	Ref     sandbox.Ref
	State   sandbox.State
	Verdict sandbox.Verdict
}

// SuspectedEdges are the profiles whose edge may be broken, and not the sandboxes behind it: all that were asked, at
// least leastDead, gave the answer that nothing inside answers, and no other one answers a probe either. The error says
// so. A profile of this machine has no edge.
func (f *Fleet) SuspectedEdges(ctx context.Context, all []Answers) map[string]error {
	counts := map[string]*answersCount{}
	for _, a := range all {
		profile := a.Ref.Provider
		if m, err := f.findMember(profile); err != nil || !m.Remote || a.State != sandbox.StateRunning {
			continue
		}
		if counts[profile] == nil {
			counts[profile] = &answersCount{}
		}
		counts[profile].add(a)
	}
	maps.DeleteFunc(counts, func(_ string, c *answersCount) bool {
		return c.dead < leastDead || c.alive > 0 || f.anyAnswers(ctx, c.others)
	})
	suspected := map[string]error{}
	for profile, c := range counts {
		suspected[profile] = fault.New(
			fault.KindUnavailable, "all %d that were asked give the same answer, that nothing inside answers: its edge may be broken, and not they", c.dead,
		).At(profile, "probe")
	}
	return suspected
}

func (c *answersCount) add(a Answers) {
	switch {
	case a.Verdict == sandbox.False:
		c.dead++
	case a.Verdict == sandbox.True:
		c.alive++
	case len(c.others) < controls:
		c.others = append(c.others, a.Ref)
	}
}

// anyAnswers reports whether one of these sandboxes answers a probe.
func (f *Fleet) anyAnswers(ctx context.Context, refs []sandbox.Ref) bool {
	for _, ref := range refs {
		if h, err := f.Probe(ctx, ref); err == nil && h.Verdict == sandbox.True {
			return true
		}
	}
	return false
}

// doubtEdges takes back what stands only on the answer of an edge that is suspected.
func (f *Fleet) doubtEdges(ctx context.Context, judged []Judged, how Judging) {
	mine := make(map[sandbox.Ref]bool, len(judged))
	all := make([]Answers, 0, len(judged)+len(how.Beside))
	for i := range judged {
		j := &judged[i]
		ref := j.Sandbox.Ref()
		mine[ref] = true
		all = append(all, Answers{ref, j.Sandbox.State, j.Answered})
	}
	for _, a := range how.Beside {
		if !mine[a.Ref] {
			all = append(all, a)
		}
	}
	suspected := f.SuspectedEdges(ctx, all)
	for i := range judged {
		if why := suspected[judged[i].Sandbox.Provider]; why != nil {
			judged[i].doubtAnswer(how, why)
		}
	}
}

// doubtAnswer judges again without the answer that nothing inside answers, where the verdict stands on it.
func (j *Judged) doubtAnswer(how Judging, why error) {
	if j.Signals.Answers != sandbox.False {
		return
	}
	sig := j.Signals
	sig.Answers = ""
	v := triage.Judge(j.Sandbox, sig, how.Thresholds(j.Sandbox), j.At)
	if v.Activity == j.Verdict.Activity {
		return
	}
	j.Signals, j.Verdict, j.Failed = sig, v, why
}
