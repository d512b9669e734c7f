package triage

import (
	"fmt"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Flag is the answer to one question of the runbook.
type Flag struct {
	ID       string // requirement id
	Severity Severity
	Verdict  sandbox.Verdict // whether Say is true
	Say      string          // a statement, the same for every verdict
	Evidence []sandbox.Evidence
}

// Flags answers the runbook's questions about one sandbox, ordered by requirement id.
// What is not observed is Unknown.
func Flags(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) []Flag {
	now, s.ClockSkew = s.Clock(now), 0
	return []Flag{
		runningOver("R11", Info, t.WatchAge, s, now),
		warningsInLog(sig),
		runningOver("R27", Warning, t.StuckAge, s, now),
		Flag{
			ID: "R28", Severity: Critical, Verdict: sandbox.False, Say: "in provisioning for more than " + sandbox.FormatElapsed(t.ProvisioningAge),
		}.checkAge(s, sandbox.StateProvisioning, t.ProvisioningAge, now),
		flagNoOwner(s, sig),
		repeatedTimeouts(sig, t),
		flagSilent(s, sig, t, now),
		flagFinished(s, sig),
	}
}

// runningOver is R11 (a symptom, to watch) and R27 (a red flag), which have two limits.
func runningOver(id string, severity Severity, limit time.Duration, s sandbox.Sandbox, now time.Time) Flag {
	f := Flag{ID: id, Severity: severity, Verdict: sandbox.False, Say: "running for more than " + sandbox.FormatElapsed(limit)}
	return f.checkAge(s, sandbox.StateRunning, limit, now)
}

func (f Flag) checkAge(s sandbox.Sandbox, state sandbox.State, limit time.Duration, now time.Time) Flag {
	verdict, e := olderThan(s, limit, now)
	switch s.State {
	case sandbox.StateUnknown, "":
		f.Verdict = sandbox.Unknown
	case state:
		f.Verdict = verdict
	default:
	}
	if e.What != "" {
		f.Evidence = []sandbox.Evidence{e}
	}
	return f
}

func warningsInLog(sig Signals) Flag {
	f := Flag{ID: "R13", Severity: Warning, Verdict: sandbox.Unknown, Say: "the log warns of memory or another resource"}
	if sig.Logs == nil {
		return f
	}
	f.Verdict = sandbox.False
	for _, h := range sig.Logs.Hits {
		if h.Pattern.Resource {
			f.Verdict = sandbox.True
			f.Evidence = append(f.Evidence, textEvidence("log pattern "+h.Pattern.ID, h.Sample, "log", h.Last))
		}
	}
	return f
}

// flagNoOwner is a hint of an orphan and never a reason to terminate a sandbox (R29).
func flagNoOwner(s sandbox.Sandbox, sig Signals) Flag {
	f := Flag{ID: "R29", Severity: Info, Verdict: sandbox.Unknown, Say: "no task and no agent belongs to it"}
	switch {
	case s.TaskID != "" || s.AgentType != "":
		f.Verdict = sandbox.False
	case sig.TracksTasks:
		f.Verdict = sandbox.True
	}
	return f
}

func repeatedTimeouts(sig Signals, t Thresholds) Flag {
	f := Flag{ID: "R30", Severity: Warning, Verdict: sandbox.Unknown, Say: fmt.Sprintf("hit a time limit %d times or more", t.RepeatTimeouts)}
	if sig.TimeLimitsHit != nil {
		f.Verdict = sandbox.VerdictOf(*sig.TimeLimitsHit >= t.RepeatTimeouts)
		f.Evidence = []sandbox.Evidence{numberEvidence("time limits hit", float64(*sig.TimeLimitsHit), "", "history", time.Time{})}
	}
	return f
}

func flagSilent(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) Flag {
	f := Flag{ID: "R41", Severity: Warning, Verdict: sandbox.Unknown, Say: "silent for more than " + sandbox.FormatElapsed(t.Inactivity)}
	sign := latestSign(s, sig, now)
	switch {
	case s.State != sandbox.StateRunning && s.State != sandbox.StateUnknown && s.State != "":
		f.Verdict = sandbox.False
	case sign.silentLonger(t.Inactivity), sign.seenWithin(t.Inactivity):
		f.Verdict = sandbox.VerdictOf(!sign.seenWithin(t.Inactivity) && s.State == sandbox.StateRunning)
		f.Evidence = []sandbox.Evidence{durationEvidence("silence", sign.ago, sign.source, now)}
	case sign.known:
		f.Evidence = []sandbox.Evidence{durationEvidence("last sign of life", sign.ago, sign.source, now)}
	}
	return f
}

func flagFinished(s sandbox.Sandbox, sig Signals) Flag {
	f := Flag{ID: "S2-35", Severity: Warning, Verdict: sandbox.Unknown, Say: "its work is done and it still runs"}
	switch {
	case s.State != sandbox.StateRunning && s.State != sandbox.StateUnknown && s.State != "":
		f.Verdict = sandbox.False
	case s.State == sandbox.StateRunning && sig.Waits == sandbox.True:
		f.Verdict = sandbox.True
	case s.State == sandbox.StateRunning && sig.Finished != "":
		f.Verdict = sig.Finished
	}
	if f.Verdict == sandbox.True && sig.FinishedBy.What != "" {
		f.Evidence = []sandbox.Evidence{sig.FinishedBy}
	}
	return f
}

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

	History []ActiveCount // samples of Active, in any order

	OverStuckAge    *int64    // running sandboxes older than the stuck age
	CleanupSeen     time.Time // of the newest cleanup line or run; zero with CleanupRead = none seen
	CleanupRead     bool      // the cleanup log or journal was read
	CleanupFailures *int64    // failed runs or items since the last successful run
	CreateFailures  *int64    // creates that failed recently; nil = none was tried
	QuotaUsed       *float64  // use of the quota with the highest use, 1 = full
}

// ActiveCount is one sample of how many sandboxes were active.
type ActiveCount struct {
	At     time.Time
	Active int64
}

// FleetFlags answers the runbook's questions about one profile.
func FleetFlags(f FleetSignals, t Thresholds, now time.Time) []Flag {
	return []Flag{
		Flag{ID: "R4", Severity: Critical, Say: fmt.Sprintf("more than %d sandboxes are active", t.ActiveMax)}.
			countOver(f.Active, t.ActiveMax, "active", "stats", now),
		flagSustained(f, t, now),
		flagTimeoutRate(f, t, now),
		Flag{ID: "R14", Severity: Warning, Say: "cleanup fails"}.countOver(f.CleanupFailures, 0, "cleanup failures", "cleanup log", now),
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

// flagTimeoutRate is R12; between the two limits the rate is neither an alert nor healthy.
func flagTimeoutRate(f FleetSignals, t Thresholds, now time.Time) Flag {
	flag := Flag{ID: "R12", Severity: Warning, Verdict: sandbox.Unknown, Say: fmt.Sprintf("more than %s%% of the runs hit a time limit", formatDecimal(t.TimeoutRateHigh*100))}
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
	flag.Evidence = []sandbox.Evidence{numberEvidence("timeout rate", *rate*100, "% "+grade, source, now)}
	return flag
}

// flagCountMismatch is R18: created minus destroyed must equal what exists. A difference is
// evidence of a leak or of lost records.
func flagCountMismatch(f FleetSignals, now time.Time) Flag {
	flag := Flag{ID: "R18", Severity: Warning, Verdict: sandbox.Unknown, Say: "created minus destroyed differs from what is there"}
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
