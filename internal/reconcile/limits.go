package reconcile

import (
	"fmt"
	"time"

	"sbx/internal/safety"
)

// Limits bound what one fix may do.
type Limits struct {
	safety.Limits

	RecordsAge time.Duration // the oldest dump that may be acted on
}

// Guards holds a plan against the limits. Marks count like endings: a provider that
// denies everything would else have every record ended, and with the next run every
// sandbox an orphan.
func (p Plan) Guards(l Limits) []safety.Guard {
	guards := []safety.Guard{
		l.MaxDeleteGuard(p.count("", ActTerminate), safety.Ending()), l.MaxDeleteGuard(p.count("", ActMark), safety.Marking()),
	}
	for _, s := range p.Sides {
		ends, marks := p.count(s.Profile, ActTerminate), p.count(s.Profile, ActMark)
		guards = append(guards, l.FractionGuard(s.Profile, ends, s.Fleet, safety.Ending()), l.FractionGuard(s.Profile, marks, s.Claims, safety.Marking()))
		if l.IsProduction(s.Profile) {
			guards = append(guards, l.ProductionGuard(s.Profile, ends+marks, safety.Acting()))
		}
		if s.Skew != 0 && ends+marks > 0 {
			guards = append(guards, safety.ClockGuard(s.Profile, s.Skew))
		}
		if !s.AsOf.IsZero() {
			guards = append(guards, recordsAge(s, p.At.Sub(s.AsOf), ends+marks > 0, l.RecordsAge))
		}
	}
	return guards
}

// recordsAge bounds the age of a dump that is acted on; one of the future proves nothing.
func recordsAge(s Side, age time.Duration, acts bool, limit time.Duration) safety.Guard {
	return safety.Guard{
		Name: "records_age " + s.Profile, Limit: float64(int(limit.Seconds())), Value: float64(int(age.Seconds())), OK: !acts || age >= 0 && age <= limit,
		Objection: fmt.Sprintf("records_age: the records of %s are %d seconds old, and the limit is %d", s.Profile, int(age.Seconds()), int(limit.Seconds())),
		Advice:    "take a fresh dump: these records may have changed since",
	}
}

// count gives how many rows of a profile have an action; "" = of all profiles.
func (p Plan) count(profile string, a Action) int {
	n := 0
	for _, r := range p.Rows {
		if r.Action == a && (profile == "" || r.Ref.Provider == profile) {
			n++
		}
	}
	return n
}

// Refusal is fault.KindRefused where a guard says no; nil = all agree.
func (p Plan) Refusal(l Limits) error {
	return safety.Refusal(p.Guards(l), "look at the plan first (without --fix): so many differences have one reason more often than many")
}
