package cleanup

import "sbx/internal/fleet"

// JudgeRecorded applies the rule to a sandbox that was observed before, at the time of then. The
// observation counts only where the record alone does not decide.
func (r Rule) JudgeRecorded(w Environment, then fleet.Recorded, profile *fleet.ProfileFigures) Judgement {
	j := r.judgeSandbox(w, then.Row, then.At, nil)
	if !j.undecided || then.Facts == nil {
		return j
	}
	seen := then.Facts.Observation(profile, then.At)
	return r.judgeSandbox(w, then.Row, then.At, &seen)
}
