package cleanup

import "sbx/internal/safety"

// Guards are the limits of a run over this survey.
func (s Survey) Guards(w World) []safety.Guard {
	guards := []safety.Guard{w.Limits.MaxDeleteGuard(len(s.Selected), safety.Ending())}
	for _, share := range s.Shares {
		if share.Err != nil || share.Selected == 0 {
			continue
		}
		guards = append(guards, w.Limits.FractionGuard(share.Profile, share.Selected, share.Fleet, safety.Ending()))
		if share.Skew != 0 {
			guards = append(guards, safety.ClockGuard(share.Profile, share.Skew))
		}
		if w.Limits.IsProduction(share.Profile) {
			guards = append(guards, w.Limits.ProductionGuard(share.Profile, share.Selected, safety.Ending()))
		}
	}
	return guards
}

// Refusal is fault.KindRefused where a guard says no; nil = all agree.
func Refusal(guards []safety.Guard) error {
	return safety.Refusal(guards, "look at the plan first (without --yes)")
}
