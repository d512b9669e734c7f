package triage

import (
	"math"
	"strconv"
	"time"

	"sbx/internal/sandbox"
)

// Signals is what was observed of one sandbox beside its record. Everything may
// be missing: nil, zero and the empty verdict mean "not observed".
type Signals struct {
	Logs  *LogFindings
	Trend *Trend

	Answers  sandbox.Verdict // a probe got an answer
	Exists   sandbox.Verdict // the provider still has it; False takes two observations apart, one proves no orphan (DESIGN section 7)
	Agrees   sandbox.Verdict // record and real process say the same (ACCEPTANCE R95)
	Finished sandbox.Verdict // the agent said that it is done and waits (S2-35)

	TracksTasks   bool // the source would name a task or an agent if there were one
	TimeLimitsHit *int // how often this sandbox, or its task before, ran into a time limit (R30)

	Fleet *FleetSignals // of the profile it belongs to
}

// silence is how long ago the last sign of work was, by log and record, and
// where that is known from. A sandbox whose log was read and is empty has been
// silent since it came to be. Times in the future prove nothing.
func silence(s sandbox.Sandbox, sig Signals, now time.Time) (quiet time.Duration, source string, known bool) {
	last, source := s.LastActivityAt, "last_activity_at"
	if sig.Logs != nil && sig.Logs.Last.After(last) {
		last, source = sig.Logs.Last, "log"
	}
	if last.IsZero() && sig.Logs != nil && sig.Logs.Lines == 0 {
		age, from := s.Age(now)
		return age, "empty log", from != sandbox.AgeUnknown
	}
	if last.IsZero() || last.After(now) {
		return 0, "", false
	}
	return now.Sub(last), source, true
}

// busy says that the processor is at its limit.
func (sig Signals) busy(t Thresholds) bool {
	return sig.Trend != nil && sig.Trend.atLimit(t)
}

// works says that the processor or the operations move at all.
func (sig Signals) works(t Thresholds) bool {
	if sig.Trend == nil {
		return false
	}
	cpu, ops := sig.Trend.CPUPercent, sig.Trend.OperationsRate
	return cpu != nil && *cpu >= t.CPUIdle || ops != nil && *ops > 0
}

// repeats says that the log goes round in a circle.
func (sig Signals) repeats(t Thresholds) bool {
	return sig.Logs != nil && sig.Logs.Repeat.Count >= t.RepeatLines
}

// Evidence helpers: every figure is written once, in one way.

func seconds(what string, d time.Duration, source string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: decimal(d.Seconds()) + "s", Source: source, At: at}
}

func number(what string, v float64, unit, source string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: decimal(v) + unit, Source: source, At: at}
}

func words(what, value, source string, at time.Time) sandbox.Evidence {
	return sandbox.Evidence{What: what, Value: value, Source: source, At: at}
}

// decimal writes at most two digits behind the point, and none that are zero.
func decimal(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// spell writes an age or a limit for a sentence; it shows what is under a
// second too, since a drill compresses time.
func spell(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return sandbox.FormatDuration(d)
}
