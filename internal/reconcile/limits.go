package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
)

// fractionFrom is how many may be selected before a share of the fleet counts: of
// four sandboxes, one is a quarter.
const fractionFrom = 5

// Limits bound what one fix may do. What exceeds them is refused whole, and never
// cut down to the first few.
type Limits struct {
	MaxDelete   int      // endings in one run, and beside them as many records
	MaxFraction int      // percent of a profile's complete fleet, or of its records that claim life
	Production  []string // profiles that are production
	Allowed     []string // of them, those that the operator has named
	RecordsAge  time.Duration
}

// Guard is one limit on a fix.
type Guard struct {
	Name  string `json:"name"`
	Limit int    `json:"limit"`
	Value int    `json:"value"`
	OK    bool   `json:"ok"`

	unit, override string
}

// Guards holds a plan against the limits. Marks count like endings: a provider that
// denies everything would else have every record ended, and with the next run every
// sandbox an orphan.
func (p Plan) Guards(l Limits) []Guard {
	ends, marks := p.count("", ActTerminate), p.count("", ActMark)
	guards := []Guard{
		{"max_delete", l.MaxDelete, ends, ends <= l.MaxDelete, " sandboxes", "--max-delete"},
		{"max_delete records", l.MaxDelete, marks, marks <= l.MaxDelete, " records", "--max-delete"},
	}
	for _, s := range p.Sides {
		ends, marks := p.count(s.Profile, ActTerminate), p.count(s.Profile, ActMark)
		guards = append(guards, fraction(s.Profile, l, ends, s.Fleet), fraction("records "+s.Profile, l, marks, s.Claims))
		if slices.Contains(l.Production, s.Profile) {
			named := slices.Contains(l.Allowed, s.Profile)
			guards = append(guards, Guard{"production " + s.Profile, 0, ends + marks, named || ends+marks == 0, "", "--production " + s.Profile})
		}
		if !s.AsOf.IsZero() {
			age, acts := p.At.Sub(s.AsOf), ends+marks > 0
			guards = append(guards, Guard{
				"records_age " + s.Profile, int(l.RecordsAge.Seconds()), int(age.Seconds()),
				!acts || age >= 0 && age <= l.RecordsAge, " seconds", "a fresh dump",
			})
		}
	}
	return guards
}

func fraction(of string, l Limits, part, whole int) Guard {
	percent := 0
	if part > 0 {
		percent = 100
	}
	if whole > 0 {
		percent = (part*100 + whole - 1) / whole
	}
	return Guard{"max_fraction " + of, l.MaxFraction, percent, part <= fractionFrom || percent <= l.MaxFraction, "%", "--max-fraction"}
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
	for _, g := range p.Guards(l) {
		if g.OK {
			continue
		}
		name, production := strings.CutPrefix(g.Name, "production ")
		if production {
			return fault.New(fault.KindRefused, "%d rows of %s, which is production, would be acted on", g.Value, name).
				WithHint("repeat with %s", g.override)
		}
		return fault.New(fault.KindRefused, "%s: %d%s, and the limit is %d%s: nothing was done", g.Name, g.Value, g.unit, g.Limit, g.unit).
			WithHint("%s", hint(g))
	}
	return nil
}

func hint(g Guard) string {
	if strings.HasPrefix(g.Name, "records_age ") {
		return "take a fresh dump: these records may have changed since"
	}
	return fmt.Sprintf("look at the plan first: so many differences have one reason more often than many; %s allows more", g.override)
}
