package safety

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
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
	Name  string  `json:"name"`
	Limit float64 `json:"limit"` // a share is written from 0 to 1
	Value float64 `json:"value"`
	OK    bool    `json:"ok"`

	Objection string `json:"-"` // what is wrong
	Override  string `json:"-"` // the flag that allows it; "" = none does
	Advice    string `json:"-"` // what to do where no flag allows it
	Answer    string `json:"-"` // the answer at a terminal that allows it; "" = none does

	share bool
}

// Figures are value and limit for people.
func (g Guard) Figures() (value, limit string) {
	if !g.share {
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

// Acting counts rows of either kind.
func Acting() Effect { return Effect{"rows", "would be acted on"} }

func (e Effect) guardSuffix(name string) string {
	if e == Marking() {
		return name + " records"
	}
	return name
}

// MaxDeleteGuard bounds how many a run may act on.
func (l Limits) MaxDeleteGuard(n int, e Effect) Guard {
	return Guard{
		Name: e.guardSuffix("max_delete"), Limit: float64(l.MaxDelete), Value: float64(n), OK: n <= l.MaxDelete,
		Objection: fmt.Sprintf("%d %s %s, more than --max-delete %d", n, e.noun, e.verb, l.MaxDelete),
		Override:  fmt.Sprintf("--max-delete %d", n),
	}
}

// FractionGuard bounds the share of a profile's complete fleet, or of its records that
// claim life.
func (l Limits) FractionGuard(profile string, part, whole int, e Effect) Guard {
	floor := max(whole, 1)
	percent, needed := 100*part/floor, (100*part+whole-1)/floor
	return Guard{
		Name: e.guardSuffix("max_fraction") + " " + profile, Limit: float64(l.MaxFraction) / 100, Value: min(1, float64(part)/float64(floor)),
		OK:        part <= FractionFrom || 100*part <= l.MaxFraction*whole,
		Objection: fmt.Sprintf("%d of the %d %s of %s %s, %d%% and more than --max-fraction %d%%", part, whole, e.noun, profile, e.verb, percent, l.MaxFraction),
		Override:  fmt.Sprintf("--max-fraction %d%%", min(needed, 100)),
		share:     true,
	}
}

// ProductionGuard refuses sandboxes of a production profile that the operator has not
// named. n counts the unnamed ones: see Unnamed.
func (l Limits) ProductionGuard(profile string, n int, e Effect) Guard {
	return Guard{
		Name: "production " + profile, Limit: 0, Value: float64(n), OK: n == 0 || slices.Contains(l.Allowed, profile),
		Objection: fmt.Sprintf("%d %s of %s, which is production, %s", n, e.noun, profile, e.verb),
		Override:  "--production " + profile, Answer: profile,
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

// UnaskedGuard bounds what ends by name without a question.
func UnaskedGuard(n int, allowed bool, spread string) Guard {
	return Guard{
		Name: "unasked", Limit: MaxUnasked, Value: float64(n), OK: allowed || n <= MaxUnasked,
		Objection: fmt.Sprintf("%d sandboxes would end: %s", n, spread),
		Override:  "--yes", Answer: strconv.Itoa(n),
	}
}

// ClockGuard refuses ages by a wrong clock. Skew is how far the profile's clock is ahead of
// this machine's.
func ClockGuard(profile string, skew time.Duration) Guard {
	return Guard{
		Name: "clock " + profile, Limit: MaxSkew.Seconds(), Value: skew.Round(time.Second).Seconds(), OK: Trusted(skew),
		Objection: untrustedClock(profile, skew), Advice: "set this machine's clock right",
	}
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
// none does. look is what to do before the limits are raised.
func Refusal(guards []Guard, look string) error {
	var objections, flags []string
	advice := ""
	for _, g := range guards {
		if g.OK {
			continue
		}
		objections = append(objections, g.Objection)
		if g.Override != "" {
			flags = append(flags, g.Override)
		} else if advice == "" {
			advice = g.Advice
		}
	}
	if len(objections) == 0 {
		return nil
	}
	err := fault.New(fault.KindRefused, "%s; nothing was done", strings.Join(objections, "; "))
	if len(flags) == len(objections) {
		return err.WithHint("%s; then, if that is what you want: %s", look, strings.Join(flags, " "))
	}
	return err.WithHint("%s", advice)
}
