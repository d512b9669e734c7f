package triage

import (
	"slices"
	"time"
)

// StandsFor is for how long a count must have been over a default limit in every sample until the
// limit is known not to fit.
const StandsFor = 24 * time.Hour

// OverFor is for how long every stored sample of a profile has been over a default limit of its
// active sandboxes, up to now; 0 = for less than StandsFor.
type OverFor struct {
	Active, Normal, Escalate time.Duration // ActiveMax, ActiveNormal and EscalateActive
}

// NewOverFor reads it from samples, in any order. A gap of StandsFor or more between two samples, or
// before now, ends it: what was meanwhile is not known.
func NewOverFor(samples []ActiveCount, t Thresholds, now time.Time) OverFor {
	past := FleetSignals{History: samples}.Past(now)
	since := func(least int) time.Duration {
		first := now
		for _, s := range slices.Backward(past) {
			if s.Active < int64(least) || first.Sub(s.At) >= StandsFor {
				break
			}
			first = s.At
		}
		if d := now.Sub(first); d >= StandsFor {
			return d
		}
		return 0
	}
	return OverFor{Active: since(t.ActiveMax + 1), Normal: since(t.ActiveNormal), Escalate: since(t.EscalateActive + 1)}
}

// Given says which limits of the count of active sandboxes were configured. A default is the same
// for a fleet of 5 and for one of 500.
type Given struct{ Active, Normal, Escalate bool }

func (g Given) with(o Thresholds) Given {
	return Given{
		g.Active || o.Given.Active || o.ActiveMax != 0, g.Normal || o.Given.Normal || o.ActiveNormal != 0,
		g.Escalate || o.Given.Escalate || o.EscalateActive != 0,
	}
}
