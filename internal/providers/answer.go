package providers

import (
	"math"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
)

// CheckAnswerID checks that one of the names in an answer is the requested id: otherwise the answer is
// fault.KindUnavailable and must not be used.
func CheckAnswerID(profile, op, asked string, names ...string) error {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	switch {
	case slices.Contains(names, asked) && asked != "":
		return nil
	case len(names) == 0:
		return fault.New(fault.KindUnavailable, "the answer names no sandbox").At(profile, op)
	}
	return WrongSandbox(profile, op, asked, names[0])
}

// IDSpeller is a provider whose sandboxes have ids with several spellings. Without it, ids are compared
// byte by byte.
type IDSpeller interface {
	// SameID says that two ids are those of one sandbox.
	SameID(a, b string) bool
}

// NameReader is a provider whose Get accepts names as well as ids. It checks itself that the answer has
// the requested name.
type NameReader interface {
	// TakesName is false for a word that has the form of an id.
	TakesName(word string) bool
}

// WrongSandbox is the error for an answer about another sandbox than the requested one. The answer must
// not be used.
func WrongSandbox(profile, op, asked, answered string) error {
	return fault.New(fault.KindUnavailable, "the answer is about another sandbox, %q", answered).At(profile, op).
		WithHint("nothing was asked of it; if %q is a name, write it without the profile, or write the id", asked)
}

// earliestYear is older than every API: an earlier time is a zero value of the API.
const earliestYear = 1990

// ValidTime is a time of an API; zero for one that no sandbox can have.
func ValidTime(at time.Time) time.Time {
	if at.Year() < earliestYear {
		return time.Time{}
	}
	return at
}

// maxBytes is more memory and disk than any machine has.
const maxBytes = 1 << 50

// ValidBytes is an amount of memory or disk of an API; nil for none and for one that no machine can
// have.
func ValidBytes(n *int64) *int64 {
	if n == nil || *n < 0 || *n > maxBytes {
		return nil
	}
	return n
}

// ValidPercent is CPU use in percent of one core; nil for none and for an impossible value.
func ValidPercent(v *float64) *float64 {
	const most = 1e6 // ten thousand cores
	if v == nil || !(*v >= 0 && *v <= most) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}

// CheckClock compares the clock of an API with this machine's, for doctor: ages depend on both.
func CheckClock(c *httpx.Client) Check {
	ahead, known := c.Skew()
	switch {
	case !known:
		return Check{Check: "clock", Verdict: sandbox.Unknown, Message: "the API does not tell its time", Info: true}
	case ahead.Abs() <= httpx.SkewTolerated:
		return Check{Check: "clock", Verdict: sandbox.True, Message: "agrees with the API's"}
	}
	way := "ahead of"
	if ahead < 0 {
		way = "behind"
	}
	return Check{
		Check: "clock", Verdict: sandbox.False, Message: "the API's clock is " + sandbox.FormatDuration(ahead.Abs()) + " " + way + " this machine's",
		Hint: "ages are counted by the clock that is behind; set this machine's right",
	}
}
