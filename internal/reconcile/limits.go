package reconcile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
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

// Guard is one limit on a fix. A share of a fleet is told as one, from 0 to 1, as
// cleanup tells it.
type Guard struct {
	Name  string  `json:"name"`
	Limit float64 `json:"limit"`
	Value float64 `json:"value"`
	OK    bool    `json:"ok"`

	unit, override string
}

// Figures are value and limit for people.
func (g Guard) Figures() (value, limit string) {
	if g.unit != percent {
		return strconv.Itoa(int(g.Value)), strconv.Itoa(int(g.Limit))
	}
	return strconv.Itoa(int(math.Ceil(g.Value*100-1e-9))) + percent, strconv.Itoa(int(g.Limit*100+0.5)) + percent
}

const percent = "%"

// counted is a guard on whole numbers.
func counted(name string, limit, value int, ok bool, unit, override string) Guard {
	return Guard{name, float64(limit), float64(value), ok, unit, override}
}

// Guards holds a plan against the limits. Marks count like endings: a provider that
// denies everything would else have every record ended, and with the next run every
// sandbox an orphan.
func (p Plan) Guards(l Limits) []Guard {
	ends, marks := p.count("", ActTerminate), p.count("", ActMark)
	guards := []Guard{
		counted("max_delete", l.MaxDelete, ends, ends <= l.MaxDelete, " sandboxes", "--max-delete"),
		counted("max_delete records", l.MaxDelete, marks, marks <= l.MaxDelete, " records", "--max-delete"),
	}
	for _, s := range p.Sides {
		ends, marks := p.count(s.Profile, ActTerminate), p.count(s.Profile, ActMark)
		guards = append(guards, fraction(s.Profile, l, ends, s.Fleet), fraction("records "+s.Profile, l, marks, s.Claims))
		if slices.Contains(l.Production, s.Profile) {
			named := slices.Contains(l.Allowed, s.Profile)
			guards = append(guards, counted("production "+s.Profile, 0, ends+marks, named || ends+marks == 0, "", "--production "+s.Profile))
		}
		if !s.AsOf.IsZero() {
			age, acts := p.At.Sub(s.AsOf), ends+marks > 0
			guards = append(guards, counted("records_age "+s.Profile, int(l.RecordsAge.Seconds()), int(age.Seconds()),
				!acts || age >= 0 && age <= l.RecordsAge, " seconds", "a fresh dump"))
		}
	}
	return guards
}

func fraction(of string, l Limits, part, whole int) Guard {
	share := min(1, float64(part)/float64(max(whole, 1)))
	ok := part <= fractionFrom || part*100 <= l.MaxFraction*whole
	return Guard{"max_fraction " + of, float64(l.MaxFraction) / 100, share, ok, percent, "--max-fraction"}
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
		value, limit := g.Figures()
		unit := strings.TrimPrefix(g.unit, percent) // which the figures have
		name, production := strings.CutPrefix(g.Name, "production ")
		if production {
			return fault.New(fault.KindRefused, "%s rows of %s, which is production, would be acted on", value, name).
				WithHint("repeat with %s", g.override)
		}
		return fault.New(fault.KindRefused, "%s: %s%s, and the limit is %s%s: nothing was done", g.Name, value, unit, limit, unit).
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
