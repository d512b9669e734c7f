package providers

import (
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
)

// CheckClock holds the clock of an API against this machine's, for doctor: ages are
// counted across the two.
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
