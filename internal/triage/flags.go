package triage

import (
	"fmt"
	"time"

	"sbx/internal/sandbox"
)

// Flag is the answer to one question of the runbook.
type Flag struct {
	ID       string // the ACCEPTANCE row
	Severity Severity
	Verdict  sandbox.Verdict // of "this is so"
	Say      string          // one line that holds whatever the verdict is
	Evidence []sandbox.Evidence
}

// Flags answers the runbook's questions about one sandbox, in the order of
// their rows. What is not observed is Unknown.
func Flags(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) []Flag {
	now, s.ClockSkew = s.Clock(now), 0
	return []Flag{
		runningOver("R11", Info, t.WatchAge, s, now),
		warningsInLog(sig),
		runningOver("R27", Warning, t.StuckAge, s, now),
		stuckProvisioning(s, t, now),
		noOwner(s, sig),
		repeatedTimeouts(sig, t),
		silent(s, sig, t, now),
		finished(s, sig),
	}
}

// runningOver is R11 (a symptom, to watch) and R27 (a red flag) with their two
// limits; see ACCEPTANCE conflict a.
func runningOver(id string, severity Severity, limit time.Duration, s sandbox.Sandbox, now time.Time) Flag {
	f := Flag{ID: id, Severity: severity, Verdict: sandbox.False, Say: "running for more than " + sandbox.FormatElapsed(limit)}
	return f.aged(s, sandbox.StateRunning, limit, now)
}

func stuckProvisioning(s sandbox.Sandbox, t Thresholds, now time.Time) Flag {
	f := Flag{ID: "R28", Severity: Critical, Verdict: sandbox.False, Say: "in provisioning for more than " + sandbox.FormatElapsed(t.ProvisioningAge)}
	return f.aged(s, sandbox.StateProvisioning, t.ProvisioningAge, now)
}

func (f Flag) aged(s sandbox.Sandbox, state sandbox.State, limit time.Duration, now time.Time) Flag {
	verdict, e := over(s, limit, now)
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
			f.Evidence = append(f.Evidence, words("log pattern "+h.Pattern.ID, h.Sample, "log", h.Last))
		}
	}
	return f
}

// noOwner is a hint of an orphan and never a reason to end one (R29).
func noOwner(s sandbox.Sandbox, sig Signals) Flag {
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
		f.Evidence = []sandbox.Evidence{number("time limits hit", float64(*sig.TimeLimitsHit), "", "history", time.Time{})}
	}
	return f
}

func silent(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) Flag {
	f := Flag{ID: "R41", Severity: Warning, Verdict: sandbox.Unknown, Say: "silent for more than " + sandbox.FormatElapsed(t.Inactivity)}
	sign := silence(s, sig, now)
	switch {
	case s.State != sandbox.StateRunning && s.State != sandbox.StateUnknown && s.State != "":
		f.Verdict = sandbox.False
	case sign.longerThan(t.Inactivity), sign.within(t.Inactivity):
		f.Verdict = sandbox.VerdictOf(!sign.within(t.Inactivity) && s.State == sandbox.StateRunning)
		f.Evidence = []sandbox.Evidence{seconds("silence", sign.ago, sign.source, now)}
	case sign.known:
		f.Evidence = []sandbox.Evidence{seconds("last sign of life", sign.ago, sign.source, now)}
	}
	return f
}

func finished(s sandbox.Sandbox, sig Signals) Flag {
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
