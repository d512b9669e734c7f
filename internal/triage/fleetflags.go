package triage

import (
	"fmt"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// FleetSignals is what was observed of one profile's sandboxes together. Nil
// means not observed; an incomplete listing leaves its counts nil.
type FleetSignals struct {
	Active         *int64
	Provisioning   *int64
	Terminating    *int64
	TotalCreated   *int64
	TotalDestroyed *int64
	TimedOut       *int64 // of TotalDestroyed, how many ended by a time limit
	// Attempts and AttemptsTimedOut count the runs of tasks that ended lately; they stand
	// for the rate of time-outs where the provider has no counters.
	Attempts         *int64
	AttemptsTimedOut *int64

	History []ActiveCount // samples of Active, in any order

	OverStuckAge    *int64    // running ones older than the stuck age
	CleanupSeen     time.Time // of the newest cleanup line or run; zero with CleanupRead = none seen
	CleanupRead     bool      // the cleanup log or journal was read
	CleanupFailures *int64    // failed runs or items since the last good run
	CreateFailures  *int64    // creates that failed lately; nil = none was tried
	QuotaUsed       *float64  // of the quota that is used most, 0..1 and above
}

// ActiveCount is one sample of how many sandboxes were active.
type ActiveCount struct {
	At     time.Time
	Active int64
}

// FleetFlags answers the runbook's questions about one profile.
func FleetFlags(f FleetSignals, t Thresholds, now time.Time) []Flag {
	return []Flag{
		activeOver(f, t, now), sustained(f, t, now), timeoutRate(f, t, now), cleanupFailing(f, now), invariant(f, now),
	}
}

func activeOver(f FleetSignals, t Thresholds, now time.Time) Flag {
	flag := Flag{ID: "R4", Severity: Critical, Verdict: sandbox.Unknown, Say: fmt.Sprintf("more than %d sandboxes are active", t.ActiveMax)}
	if f.Active != nil {
		flag.Verdict = sandbox.VerdictOf(*f.Active > int64(t.ActiveMax))
		flag.Evidence = []sandbox.Evidence{number("active", float64(*f.Active), "", "stats", now)}
	}
	return flag
}

// sustained is R10: every sample is over the limit, from at least Sustained ago
// until the newest. One sample proves no duration, and a history that does not
// reach back that far proves nothing.
func sustained(f FleetSignals, t Thresholds, now time.Time) Flag {
	flag := Flag{ID: "R10", Severity: Critical, Verdict: sandbox.Unknown, Say: fmt.Sprintf("more than %d active for %s or longer", t.ActiveMax, sandbox.FormatElapsed(t.Sustained))}
	history := ordered(f.History, now)
	since := len(history)
	for since > 0 && history[since-1].Active > int64(t.ActiveMax) {
		since--
	}
	switch {
	case len(history) == 0:
	case since == len(history):
		flag.Verdict = sandbox.False
	case since < len(history)-1 && now.Sub(history[since].At) >= t.Sustained:
		flag.Verdict = sandbox.True
		flag.Evidence = []sandbox.Evidence{seconds("over the limit", now.Sub(history[since].At), "history", now)}
	case since > 0:
		flag.Verdict = sandbox.False // it was at or under the limit too lately
	}
	return flag
}

// ordered gives the samples oldest first, without those from the future.
func ordered(history []ActiveCount, now time.Time) []ActiveCount {
	past := slices.DeleteFunc(slices.Clone(history), func(h ActiveCount) bool { return h.At.IsZero() || h.At.After(now) })
	slices.SortStableFunc(past, func(a, b ActiveCount) int { return a.At.Compare(b.At) })
	return past
}

// fewAttempts are too few for a rate: one of them that timed out would be over the
// limit of 5 %.
const fewAttempts = 20

// TimeoutRate is the share of ended sandboxes that a time limit ended, 0 to 1, by the
// provider's counters, else of the attempts of tasks; nil while too few have ended or the
// figures contradict each other.
func (f FleetSignals) TimeoutRate() *float64 {
	if f.TimedOut != nil && f.TotalDestroyed != nil {
		return countShare(*f.TimedOut, *f.TotalDestroyed)
	}
	if f.AttemptsTimedOut == nil || f.Attempts == nil || *f.Attempts < fewAttempts {
		return nil
	}
	return countShare(*f.AttemptsTimedOut, *f.Attempts)
}

func countShare(part, whole int64) *float64 {
	if whole <= 0 || part < 0 || part > whole {
		return nil
	}
	return new(float64(part) / float64(whole))
}

// timeoutRate is R12; between the two limits the rate is neither an alert nor
// healthy (ACCEPTANCE conflict e).
func timeoutRate(f FleetSignals, t Thresholds, now time.Time) Flag {
	flag := Flag{ID: "R12", Severity: Warning, Verdict: sandbox.Unknown, Say: fmt.Sprintf("more than %s%% of the runs hit a time limit", decimal(t.TimeoutRateHigh*100))}
	rate := f.TimeoutRate()
	if rate == nil {
		return flag
	}
	flag.Verdict = sandbox.VerdictOf(*rate > t.TimeoutRateHigh)
	grade := "healthy"
	switch {
	case *rate > t.TimeoutRateHigh:
		grade = "alert"
	case *rate >= t.TimeoutRateGood:
		grade = "degraded"
	}
	source := "stats"
	if f.TimedOut == nil || f.TotalDestroyed == nil {
		source = "tasks"
	}
	flag.Evidence = []sandbox.Evidence{number("timeout rate", *rate*100, "% "+grade, source, now)}
	return flag
}

func cleanupFailing(f FleetSignals, now time.Time) Flag {
	flag := Flag{ID: "R14", Severity: Warning, Verdict: sandbox.Unknown, Say: "cleanup fails"}
	if f.CleanupFailures != nil {
		flag.Verdict = sandbox.VerdictOf(*f.CleanupFailures > 0)
		flag.Evidence = []sandbox.Evidence{number("cleanup failures", float64(*f.CleanupFailures), "", "cleanup log", now)}
	}
	return flag
}

// invariant is R18: what was created and not destroyed must be somewhere. A
// breach is evidence of a leak or of lost records.
func invariant(f FleetSignals, now time.Time) Flag {
	flag := Flag{ID: "R18", Severity: Warning, Verdict: sandbox.Unknown, Say: "created minus destroyed differs from what is there"}
	for _, n := range []*int64{f.Active, f.Provisioning, f.Terminating, f.TotalCreated, f.TotalDestroyed} {
		if n == nil {
			return flag
		}
	}
	left, there := *f.TotalCreated-*f.TotalDestroyed, *f.Active+*f.Provisioning+*f.Terminating
	flag.Verdict = sandbox.VerdictOf(left != there)
	flag.Evidence = []sandbox.Evidence{
		number("created minus destroyed", float64(left), "", "stats", now),
		number("active, provisioning and terminating", float64(there), "", "stats", now),
	}
	return flag
}
