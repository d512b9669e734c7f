package cleanup

import (
	"slices"

	"sbx/internal/triage"
)

// SignalsOf reads the journals of cleanup runs for the rules of triage: when a run last
// looked at a profile, how many runs in a row have failed there, and how many sandboxes ran
// at each of them. Runs come newest first, each with its whole journal. A journal that
// cannot be trusted is left out. Without a recorded run all signals are unknown: cleanup may
// run on another machine.
func SignalsOf(newestFirst []History, profile string) triage.FleetSignals {
	var sig triage.FleetSignals
	failures, counting := int64(0), true
	for _, h := range newestFirst {
		share, asked := h.share(profile)
		if !asked || h.Broken != "" {
			continue
		}
		if !sig.CleanupRead {
			sig.CleanupRead, sig.CleanupSeen = true, h.StartedAt
		}
		if share.Complete && share.Active != nil {
			sig.History = append(sig.History, triage.ActiveCount{At: h.Begin.Plan.MadeAt, Active: int64(*share.Active)})
		}
		switch {
		case h.End == nil: // it runs, or was cut off: neither is known to have failed
		case slices.Contains(h.End.Succeeded, profile):
			counting = false
		case counting && share.Unowned == 0: // what nobody owns is undecided, and no failure
			failures++
		}
	}
	if sig.CleanupRead {
		sig.CleanupFailures = &failures
	}
	return sig
}

// share is what a run saw of a profile. Of a run of another host only its successes are
// known.
func (h History) share(profile string) (ShareRecord, bool) {
	for _, p := range h.Begin.Profiles {
		if p.Profile == profile {
			return p, true
		}
	}
	return ShareRecord{}, h.End != nil && slices.Contains(h.End.Succeeded, profile)
}
