package triage

import (
	"fmt"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// FleetSignals is what was observed of all sandboxes of one profile. Nil means not
// observed; an incomplete listing leaves its counts nil.
type FleetSignals struct {
	Active         *int64
	Provisioning   *int64
	Terminating    *int64
	TotalCreated   *int64
	TotalDestroyed *int64
	TimedOut       *int64 // of TotalDestroyed, how many ended by a time limit
	// Attempts and AttemptsTimedOut count the recent attempts of tasks; the time-out rate
	// is computed from them where the provider has no counters.
	Attempts         *int64
	AttemptsTimedOut *int64
	AttemptsInactive *int64 // of Attempts, how many inactivity ended
	// Stops counts the stops of recent tasks that have an outcome, and StopsFailed those
	// without a verified end.
	Stops       *int64
	StopsFailed *int64

	History []ActiveCount // samples of Active, in any order

	OverStuckAge        *int64 // running sandboxes older than the stuck age
	OverProvisioningAge *int64 // sandboxes in provisioning for longer than that may take; nil = not counted

	Missing *int64 // of the running ones that were looked at, those that do not exist; nil = none was looked at

	CleanupSeen     time.Time // of the newest cleanup line or run; zero with CleanupRead = none seen
	CleanupRead     bool      // the cleanup log or journal was read
	CleanupFailures *int64    // failed runs or items since the last successful run
	CleanupNotFound *int64    // of the cleanup log, how many removals failed because there was no sandbox; nil = no log
	CleanupRefusals int64     // runs since the last successful one that a guard refused; they are no failures
	CreateFailures  *int64    // creates that failed recently; nil = none was tried
	QuotaUsed       *float64  // use of the quota with the highest use, 1 = full
	MaxSandboxes    *int64    // the configured limit of running ones; nil = none
}

// ActiveCount is one sample of how many sandboxes were active.
type ActiveCount struct {
	At     time.Time
	Active int64
}

// FleetFlags answers the runbook's questions about one profile.
func FleetFlags(f FleetSignals, t Thresholds, now time.Time) []Flag {
	return []Flag{
		Flag{ID: "R4", Severity: Critical, Say: fmt.Sprintf("more than %d active", t.ActiveMax)}.
			countOver(f.Active, t.ActiveMax, "active", "stats", now),
		flagSustained(f, t, now),
		flagTimeoutRate(f, t, now),
		Flag{ID: "R14", Severity: Warning, Say: "cleanup fails"}.countOver(f.CleanupFailures, 0, "cleanup failures", "cleanup log", now),
		flagOverLimit(f, now),
		flagCountMismatch(f, now),
	}
}

// countOver compares a count with the limit; a count of nil leaves the verdict Unknown.
func (f Flag) countOver(count *int64, limit int, what, source string, now time.Time) Flag {
	f.Verdict = sandbox.Unknown
	if count != nil {
		f.Verdict = sandbox.VerdictOf(*count > int64(limit))
		f.Evidence = []sandbox.Evidence{numberEvidence(what, float64(*count), "", source, now)}
	}
	return f
}

// flagSustained is R10: every sample since Sustained or longer ago is over the limit. One
// sample proves no duration, and a shorter history proves nothing.
func flagSustained(f FleetSignals, t Thresholds, now time.Time) Flag {
	flag := Flag{ID: "R10", Severity: Critical, Verdict: sandbox.Unknown, Say: fmt.Sprintf("more than %d active for %s or longer", t.ActiveMax, sandbox.FormatElapsed(t.Sustained))}
	history := sortedHistory(f.History, now)
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
		flag.Evidence = []sandbox.Evidence{durationEvidence("over the limit", now.Sub(history[since].At), "history", now)}
	case since > 0:
		flag.Verdict = sandbox.False // it was at or under the limit recently
	}
	return flag
}

// Growth returns the oldest and the newest sample of how many were active; false = they are not at
// least so far apart.
func (f FleetSignals) Growth(apart time.Duration, now time.Time) (first, last ActiveCount, known bool) {
	history := sortedHistory(f.History, now)
	if len(history) < 2 {
		return first, last, false
	}
	first, last = history[0], history[len(history)-1]
	return first, last, last.At.Sub(first.At) >= apart
}

// sortedHistory returns the samples oldest first, without those from the future.
func sortedHistory(history []ActiveCount, now time.Time) []ActiveCount {
	past := slices.DeleteFunc(slices.Clone(history), func(h ActiveCount) bool { return h.At.IsZero() || h.At.After(now) })
	slices.SortStableFunc(past, func(a, b ActiveCount) int { return a.At.Compare(b.At) })
	return past
}

// fewAttempts is the least number of attempts that gives a rate: one of 20 that times out
// is the limit of 5 %.
const fewAttempts = 20

// TimeoutRate is the share of ended sandboxes that a time limit ended, 0 to 1, by the
// provider's counters, else by the attempts of tasks; nil while too few have ended or the
// counters contradict each other.
func (f FleetSignals) TimeoutRate() *float64 {
	if f.TimedOut != nil && f.TotalDestroyed != nil {
		return countShare(*f.TimedOut, *f.TotalDestroyed)
	}
	return shareOfMany(f.AttemptsTimedOut, f.Attempts)
}

// InactivityRate is the share of recent attempts that inactivity ended (S1-53); nil while there
// are too few.
func (f FleetSignals) InactivityRate() *float64 {
	return shareOfMany(f.AttemptsInactive, f.Attempts)
}

// StopFailureRate is the share of recent stops without a verified end (S1-52); nil while there are
// too few.
func (f FleetSignals) StopFailureRate() *float64 { return shareOfMany(f.StopsFailed, f.Stops) }

// shareOfMany is a share of at least fewAttempts; nil else.
func shareOfMany(part, whole *int64) *float64 {
	if part == nil || whole == nil || *whole < fewAttempts {
		return nil
	}
	return countShare(*part, *whole)
}

func countShare(part, whole int64) *float64 {
	if whole <= 0 || part < 0 || part > whole {
		return nil
	}
	return new(float64(part) / float64(whole))
}

// RateGrade is how a rate of timeouts is judged.
type RateGrade string

// The closed list. Between the two limits a rate is neither healthy nor an alert.
const (
	RateHealthy  RateGrade = "healthy"
	RateDegraded RateGrade = "degraded"
	RateAlert    RateGrade = "alert"
)

// GradeTimeouts grades a rate of timeouts, 0 to 1.
func (t Thresholds) GradeTimeouts(rate float64) RateGrade {
	switch {
	case rate > t.TimeoutRateHigh:
		return RateAlert
	case rate >= t.TimeoutRateGood:
		return RateDegraded
	}
	return RateHealthy
}

// flagOverLimit is R111: a limit that works is never exceeded, so more running ones show that not
// every create is bound by it, or that sandboxes leak.
func flagOverLimit(f FleetSignals, now time.Time) Flag {
	flag := Flag{ID: "R111", Severity: Warning, Verdict: sandbox.Unknown, Say: "more are active than max_sandboxes allows: not every create obeys it, or sandboxes leak"}
	if f.MaxSandboxes == nil || f.Active == nil {
		return flag
	}
	flag.Verdict = sandbox.VerdictOf(*f.Active > *f.MaxSandboxes)
	flag.Evidence = []sandbox.Evidence{
		numberEvidence("active", float64(*f.Active), "", "stats", now), numberEvidence("max_sandboxes", float64(*f.MaxSandboxes), "", "config", now),
	}
	return flag
}

// flagTimeoutRate is R12; between the two limits the rate is neither an alert nor healthy.
func flagTimeoutRate(f FleetSignals, t Thresholds, now time.Time) Flag {
	flag := Flag{ID: "R12", Severity: Warning, Verdict: sandbox.Unknown, Say: fmt.Sprintf("more than %s%% of the runs hit a time limit", formatDecimal(t.TimeoutRateHigh*100))}
	rate := f.TimeoutRate()
	if rate == nil {
		return flag
	}
	flag.Verdict = sandbox.VerdictOf(*rate > t.TimeoutRateHigh)
	source := "stats"
	if f.TimedOut == nil || f.TotalDestroyed == nil {
		source = "tasks"
	}
	flag.Evidence = []sandbox.Evidence{numberEvidence("timeout rate", *rate*100, "% "+string(t.GradeTimeouts(*rate)), source, now)}
	return flag
}

// flagCountMismatch is R18: created minus destroyed must equal what exists. A difference is
// evidence of a leak or of lost records.
func flagCountMismatch(f FleetSignals, now time.Time) Flag {
	flag := Flag{ID: "R18", Severity: Warning, Verdict: sandbox.Unknown, Say: "created minus destroyed differs from what exists"}
	for _, n := range []*int64{f.Active, f.Provisioning, f.Terminating, f.TotalCreated, f.TotalDestroyed} {
		if n == nil {
			return flag
		}
	}
	left, there := *f.TotalCreated-*f.TotalDestroyed, *f.Active+*f.Provisioning+*f.Terminating
	flag.Verdict = sandbox.VerdictOf(left != there)
	flag.Evidence = []sandbox.Evidence{
		numberEvidence("created minus destroyed", float64(left), "", "stats", now),
		numberEvidence("active, provisioning and terminating", float64(there), "", "stats", now),
	}
	return flag
}
