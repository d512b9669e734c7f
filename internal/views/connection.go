package views

import (
	"time"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// ConnectionRow is how the provider of a profile answers, as of Now.
type ConnectionRow struct {
	fleet.Connection

	Now time.Time
}

// BreakerText says that the circuit breaker is open: "calls paused after failures, next in 20s"; "" = it is closed.
func (r ConnectionRow) BreakerText() string {
	if !r.OpenUntil.After(r.Now) {
		return ""
	}
	text := "calls paused after failures, next in " + roundedUp(r.OpenUntil.Sub(r.Now))
	if r.Err != nil {
		text += ": " + r.Err.Error()
	}
	return text
}

// roundedUp is a time to come, in whole seconds: what comes in 400 ms does not come in 0s.
func roundedUp(d time.Duration) string {
	return sandbox.FormatDuration((d + time.Second - 1).Truncate(time.Second))
}

// ClockText says that the clocks differ by more than ages tolerate: "clock 45s ahead of ours"; "" = they agree, or it
// is not known.
func (r ConnectionRow) ClockText() string {
	words := providers.ClockWords(r.Skew)
	if words == "" {
		return ""
	}
	return "clock " + words + " ours"
}

// LatencyText is how long the last complete listing took; "" = there was none.
func (r ConnectionRow) LatencyText() string {
	if r.CompleteAt.IsZero() {
		return ""
	}
	return "took " + sandbox.FormatElapsed(r.Took.Truncate(time.Millisecond))
}
