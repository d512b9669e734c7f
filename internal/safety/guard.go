package safety

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// Limits that no configuration changes.
const (
	// MaxUnasked is how many sandboxes end by name without a question or --yes.
	MaxUnasked = 5
	// FractionFrom is how many of a profile may be selected before the share of its fleet
	// counts: one of four sandboxes is a quarter.
	FractionFrom = 5
	// MaxSkew is how far a provider's clock may be off before ages cannot be trusted.
	MaxSkew = 2 * time.Minute
)

// Limits bound one run. A run that exceeds them is refused as a whole, and never reduced to
// its first sandboxes.
type Limits struct {
	MaxDelete   int      // endings in one run, and as many marked records
	MaxFraction int      // percent of a profile's complete fleet, above FractionFrom selected ones
	Production  []string // profiles that are production
	Allowed     []string // those of them that the operator has named with --production
}

// IsProduction reports whether a profile is production.
func (l Limits) IsProduction(profile string) bool { return slices.Contains(l.Production, profile) }

// Guard is one limit of a run, with its result.
type Guard struct {
	Name  string
	Limit float64 // a share is written from 0 to 1
	Value float64
	OK    bool

	Objection string // what is wrong
	Advice    string // what to do where no flag allows it
	Answer    string // the answer at a terminal that allows it; "" = none does
}

// Record is how a journal keeps guards.
func Record(guards []Guard) []runs.Guard {
	kept := make([]runs.Guard, len(guards))
	for i, g := range guards {
		kept[i] = runs.Guard{Name: g.Name, Limit: g.Limit, Value: g.Value, OK: g.OK}
	}
	return kept
}

// RecordedGuards are the guards of a journal.
func RecordedGuards(kept []runs.Guard) []Guard {
	guards := make([]Guard, len(kept))
	for i, g := range kept {
		guards[i] = Guard{Name: g.Name, Limit: g.Limit, Value: g.Value, OK: g.OK}
	}
	return guards
}

// How the names of the guards begin that a flag overrides; the figures of guardFraction are shares.
const (
	guardDelete     = "max_delete"
	guardFraction   = "max_fraction"
	guardProduction = "production"
	guardUnasked    = "unasked"
)

// OverrideFlag is the flag that allows what the guard refuses; "" = none does. It also holds for a
// guard that was read from a journal.
func (g Guard) OverrideFlag() string {
	value, _ := g.Figures()
	name, profile, _ := strings.Cut(g.Name, " ")
	switch name {
	case guardDelete:
		return "--max-delete " + value
	case guardFraction:
		return "--max-fraction " + value
	case guardProduction:
		return "--production " + profile
	case guardUnasked:
		return "--yes"
	}
	return ""
}

// RetryLine is a command line, words quoted for a shell, with the flags that let it pass its
// guards. An earlier value of such a flag is left out. Without a line it is the flags alone.
func RetryLine(line, flags []string) string {
	if len(line) == 0 {
		return strings.Join(flags, " ")
	}
	line = slices.Clone(line)
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, " ")
		if name != "--max-delete" && name != "--max-fraction" {
			continue // repeatable, or it could not have been there
		}
		if at := slices.Index(line, name); at >= 0 && at+1 < len(line) {
			line = slices.Delete(line, at, at+2)
		}
		line = slices.DeleteFunc(line, func(w string) bool { return strings.HasPrefix(w, name+"=") })
	}
	return "`" + strings.Join(append(line, flags...), " ") + "`"
}

// OverrideFlags are the flags that allow what these guards refuse, each with the highest value that
// is needed; all = no guard refuses that none allows.
func OverrideFlags(guards []Guard) (flags []string, all bool) {
	all = true
	needed := map[string]Guard{}
	var names []string
	for _, g := range guards {
		flag := g.OverrideFlag()
		if g.OK || flag == "" {
			all = all && g.OK
			continue
		}
		name, _, _ := strings.Cut(flag, " ")
		if name == "--production" {
			name = flag
		}
		if before, known := needed[name]; !known {
			names = append(names, name)
		} else if before.Value > g.Value {
			continue
		}
		needed[name] = g
	}
	for _, name := range names {
		flags = append(flags, needed[name].OverrideFlag())
	}
	return flags, all
}

// isShare also holds for a guard that was read from a journal.
func (g Guard) isShare() bool { return strings.HasPrefix(g.Name, guardFraction) }

// IsTooFew reports that a share is above its limit, and does not count since it is of
// FractionFrom sandboxes or fewer.
func (g Guard) IsTooFew() bool { return g.OK && g.isShare() && g.Value > g.Limit }

// Figures are value and limit for people.
func (g Guard) Figures() (value, limit string) {
	if !g.isShare() {
		return strconv.FormatFloat(g.Value, 'f', -1, 64), strconv.FormatFloat(g.Limit, 'f', -1, 64)
	}
	return strconv.Itoa(int(math.Ceil(g.Value*100-1e-9))) + "%", strconv.Itoa(int(g.Limit*100+0.5)) + "%"
}

// Effect is what a run does to what is counted.
type Effect struct{ noun, verb string }

// Ending counts sandboxes that would end.
func Ending() Effect { return Effect{"sandboxes", "would end"} }

// Marking is the effect of marking records as ended.
func Marking() Effect { return Effect{"records", "would be marked as ended"} }

// Extending counts sandboxes that would live longer, and cost more.
func Extending() Effect { return Effect{"sandboxes", "would live longer"} }

// Acting counts rows of either kind.
func Acting() Effect { return Effect{"rows", "would be changed"} }

func (e Effect) guardSuffix(name string) string {
	if e == Marking() {
		return name + " records"
	}
	return name
}

// MaxDeleteGuard bounds how many a run may act on.
func (l Limits) MaxDeleteGuard(n int, e Effect) Guard {
	return Guard{
		Name: e.guardSuffix(guardDelete), Limit: float64(l.MaxDelete), Value: float64(n), OK: n <= l.MaxDelete,
		Objection: fmt.Sprintf("%d %s %s, more than --max-delete %d", n, e.noun, e.verb, l.MaxDelete),
	}
}

// FractionGuard bounds the share of a profile's complete fleet, or of its records that
// claim life.
func (l Limits) FractionGuard(profile string, part, whole int, e Effect) Guard {
	floor := max(whole, 1)
	percent := 100 * part / floor
	return Guard{
		Name: e.guardSuffix(guardFraction) + " " + profile, Limit: float64(l.MaxFraction) / 100, Value: min(1, float64(part)/float64(floor)),
		OK:        part <= FractionFrom || 100*part <= l.MaxFraction*whole,
		Objection: fmt.Sprintf("%d of the %d %s of %s %s, %d%% and more than --max-fraction %d%%", part, whole, e.noun, profile, e.verb, percent, l.MaxFraction),
	}
}

// ProductionGuard refuses sandboxes of a production profile that the operator has not
// named. n counts the unnamed ones: see Unnamed.
func (l Limits) ProductionGuard(profile string, n int, e Effect) Guard {
	return Guard{
		Name: guardProduction + " " + profile, Limit: 0, Value: float64(n), OK: n == 0 || slices.Contains(l.Allowed, profile),
		Objection: fmt.Sprintf("%d %s of %s, which is production, %s", n, e.noun, profile, e.verb),
		Answer:    profile,
	}
}

// Unnamed counts the sandboxes of one production profile that the operator has not named. A
// single sandbox whose whole reference was typed is named, because the reference contains
// the profile. Several are not: lists are pasted, so they need the name of the profile too.
// A bare word names no profile, and nobody reads a pipe.
func Unnamed(chosen []Choice) int {
	if len(chosen) == 1 && chosen[0] == ByReference {
		return 0
	}
	return len(chosen)
}

// UnaskedGuard bounds what ends or lives longer by name without a question.
func UnaskedGuard(n int, allowed bool, spread string, e Effect) Guard {
	if e == Ending() {
		e.verb = "would be terminated"
	}
	return Guard{
		Name: guardUnasked, Limit: MaxUnasked, Value: float64(n), OK: allowed || n <= MaxUnasked,
		Objection: fmt.Sprintf("%d %s %s: %s", n, e.noun, e.verb, spread),
		Answer:    strconv.Itoa(n),
	}
}

// ClockGuard refuses ages by a wrong clock. Skew is how far the profile's clock is ahead of
// this machine's.
func ClockGuard(profile string, skew time.Duration) Guard {
	return Guard{
		Name: "clock " + profile, Limit: MaxSkew.Seconds(), Value: skew.Round(time.Second).Seconds(), OK: Trusted(skew),
		Objection: untrustedClock(profile, skew), Advice: "correct this machine's clock",
	}
}

// ClockError is fault.KindRefused: by a wrong clock no rule can say what is old.
func ClockError(profile string, skew time.Duration) error {
	return fault.New(fault.KindRefused, "%s", untrustedClock(profile, skew)).At(profile, "clock").WithHint("correct this machine's clock, or that of the provider")
}

// Trusted reports whether ages can be trusted with this difference of clocks.
func Trusted(skew time.Duration) bool { return skew.Abs() <= MaxSkew }

func untrustedClock(profile string, skew time.Duration) string {
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	return fmt.Sprintf("the clock of %s is %s %s this machine's, so that no age can be trusted", profile, sandbox.FormatDuration(skew.Abs()), way)
}

// Refusal joins the objections of all guards that refuse, as fault.KindRefused; nil when
// none does. look is what to do before the limits are raised, line the command line that was
// typed, if it is known.
func Refusal(guards []Guard, look string, line ...string) error {
	var objections []string
	advice := ""
	for _, g := range guards {
		if g.OK {
			continue
		}
		objections = append(objections, g.Objection)
		if g.OverrideFlag() == "" && advice == "" {
			advice = g.Advice
		}
	}
	if len(objections) == 0 {
		return nil
	}
	err := fault.New(fault.KindRefused, "%s; nothing was done", strings.Join(objections, "; "))
	if flags, all := OverrideFlags(guards); all {
		return err.WithHint("%s; then, to do it: %s", look, RetryLine(line, flags))
	}
	return err.WithHint("%s", advice)
}
