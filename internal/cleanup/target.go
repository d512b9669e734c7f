package cleanup

import (
	"slices"

	"sbx/internal/fault"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// Target is one sandbox that a run may end.
type Target struct {
	Item    runs.Item
	Sandbox sandbox.Sandbox
	Seen    *Judgement          // by the survey; nil = it is judged before its end is requested
	Asked   bool                // an interrupted run may have requested its end
	Request *sandbox.EndRequest // the last request of that run; nil = none is known
	Settled *sandbox.Ending     // the outcome where no end is requested; nil = it is requested

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

// TargetsWithin limits a survey to an earlier plan: only sandboxes of the plan end.
func (s Survey) TargetsWithin(p Plan) []Target {
	out := make([]Target, 0, len(p.Items))
	for _, item := range p.Items {
		out = append(out, s.targetOf(item))
	}
	return out
}

// targetOf makes a target of an item of an earlier plan. It ends only where the survey selects it again.
func (s Survey) targetOf(item runs.Item) Target {
	item.Excluded = "" // a sandbox that another run excluded is judged anew
	ref := item.Ref
	t := Target{Item: item, Sandbox: sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID, Name: item.Name, State: item.State, CreatedAt: item.CreatedAt}}
	if j, is := findJudgement(s.Selected, ref); is {
		t.Sandbox, t.Seen = j.Sandbox, &j
		return t
	}
	if t.Settled = s.whyNotSelected(ref); t.Settled != nil {
		t.Item.Excluded = t.Settled.Reason
	} else {
		t.unlisted, t.Item.Excluded = true, unlisted
	}
	return t
}

// findJudgement gives a copy: Narrow moves the elements of the survey.
func findJudgement(all []Judgement, ref sandbox.Ref) (j Judgement, found bool) {
	i := slices.IndexFunc(all, func(j Judgement) bool { return j.Sandbox.Ref() == ref })
	if i < 0 {
		return Judgement{}, false
	}
	return all[i], true
}

// whyNotSelected is the outcome of a sandbox that an earlier plan selected and the survey does not; nil = the survey
// does not contain it, though its provider was listed. Such a sandbox is read by its id, and stays if it exists, because
// no guard has counted it.
func (s Survey) whyNotSelected(ref sandbox.Ref) *sandbox.Ending {
	if j, is := findJudgement(s.Kept, ref); is {
		if j.KeepReason == KeepEnded {
			return settledEnding(ref, sandbox.OutcomeAlreadyGone, "it had ended before: "+string(j.Sandbox.State))
		}
		return settledEnding(ref, sandbox.OutcomeChanged, "the rule no longer selects it: "+j.Reason)
	}
	if err := s.leftOutError(ref.Provider); err != nil {
		e := settledEnding(ref, sandbox.OutcomeNotAttempted, "its provider could not be listed")
		e.Err = err
		return e
	}
	return s.belowQuotaEnding(ref)
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
	s.retainSelected(func(j Judgement) bool { return goes[j.Sandbox.Ref()] })
}

// KeepRefusedByProvider moves what its provider would refuse to end from Selected to Kept; refused has the reasons.
func (s *Survey) KeepRefusedByProvider(refused map[sandbox.Ref]string) {
	for i := range s.Selected {
		j := &s.Selected[i]
		if why := refused[j.Sandbox.Ref()]; why != "" {
			j.keepFor("rehearsal", KeepRefused, why)
			s.Kept = append(s.Kept, *j)
		}
	}
	s.retainSelected(Judgement.Selected)
}

// retainSelected drops the others from what is selected, and counts what is left.
func (s *Survey) retainSelected(goes func(Judgement) bool) {
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
