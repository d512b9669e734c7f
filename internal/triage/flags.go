package triage

import (
	"cmp"
	"fmt"
	"time"

	"sbx/internal/sandbox"
)

// Flag is the answer to one question of the runbook.
type Flag struct {
	ID       string // its name
	Severity Severity
	Verdict  sandbox.Verdict // whether Say is true
	Say      string          // a statement, the same for every verdict
	Evidence []sandbox.Evidence
	// Weighed marks age and silence, which prove nothing by themselves: a sandbox at work may be
	// old, and one that is thinking silent. The verdict on the sandbox weighs them.
	Weighed bool
}

// IsProblem reports whether the flag alone shows that something is wrong: it holds, it is a warning
// or critical, and it is not Weighed.
func (f Flag) IsProblem() bool {
	return f.Verdict == sandbox.True && f.Severity != Info && !f.Weighed
}

// Flags answers the runbook's questions about one sandbox, in one order.
// What is not observed is Unknown.
func Flags(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) []Flag {
	now, s.ClockSkew = s.Clock(now), 0
	return []Flag{
		runningOver("running_long", Info, t.WatchAge, s, now),
		warningsInLog(s, sig),
		runningOver("over_age", Warning, t.StuckAge, s, now),
		Flag{
			ID: "provisioning_long", Severity: Critical, Weighed: true, Verdict: sandbox.False, Say: "in provisioning for more than " + sandbox.FormatElapsed(t.ProvisioningAge),
		}.checkAge(s, sandbox.StateProvisioning, t.ProvisioningAge, now),
		flagNoOwner(s, sig),
		repeatedTimeouts(sig, t),
		flagSilent(s, sig, t, now),
		flagEnding(s, t, now),
		flagRunsAfterItsEnd(s, sig),
		flagNoHeartbeat(s, sig, now),
		flagFinished(s, sig),
		flagMemoryPressure(s, sig, t),
	}
}

// flagMemoryPressure is S3-16: memory is near its limit before the kernel kills anything. It is a
// warning where memory grows or has been there for long; what is only large may be a cache.
func flagMemoryPressure(s sandbox.Sandbox, sig Signals, t Thresholds) Flag {
	f := Flag{
		ID: "memory_near_limit", Severity: Info, Verdict: sandbox.Unknown,
		Say: fmt.Sprintf("memory is over %s%% of its limit, or soon full", FormatDecimal(t.MemoryNear*100)),
	}
	if s.State != sandbox.StateRunning && s.State != sandbox.StateUnknown && s.State != "" {
		f.Verdict = sandbox.False
		return f
	}
	tr := sig.Trend
	if tr == nil {
		return f
	}
	share, known := tr.memoryShare()
	if !known {
		return f
	}
	fills := tr.memoryGrows(t) && tr.fillsUp(t)
	f.Verdict = sandbox.VerdictOf(share >= t.MemoryNear || fills)
	f.Evidence = []sandbox.Evidence{NumberEvidence("memory", share*100, "% of the limit", tr.Source, tr.At)}
	if fills {
		f.Severity = Warning
	}
	if share >= t.MemoryNear && tr.NearLimitFor >= t.Sustained {
		f.Severity = Warning
		f.Evidence = append(f.Evidence, DurationEvidence("near the limit for", tr.NearLimitFor, cmp.Or(tr.MemorySource, tr.Source), tr.At))
	}
	if left, grows := tr.fullIn(); fills && grows {
		f.Evidence = append(f.Evidence, textEvidence("full", "in about "+sandbox.FormatDuration(left), cmp.Or(tr.MemorySource, tr.Source), tr.At))
	}
	return f
}

const (
	beatEvery  = 30 * time.Second // between two heartbeats of a worker (S2-10)
	beatsDue   = 3                // this many without one mean that the worker is gone
	beatSource = "heartbeats"
)

// flagNoHeartbeat is S2-10: the worker in a running sandbox has sent no heartbeat. A heartbeat is no
// sign of work, so that it never makes a sandbox active; without any on record nothing is known.
func flagNoHeartbeat(s sandbox.Sandbox, sig Signals, now time.Time) Flag {
	f := Flag{ID: "heartbeats_missed", Severity: Warning, Verdict: sandbox.Unknown, Say: fmt.Sprintf("its worker has missed %d heartbeats or more", beatsDue)}
	switch silence := now.Sub(sig.LastBeatAt); {
	case sig.LastBeatAt.IsZero(), silence < 0, s.State == sandbox.StateUnknown, s.State == "":
	case s.State != sandbox.StateRunning:
		f.Verdict = sandbox.False
	default:
		f.Verdict = sandbox.VerdictOf(silence > beatsDue*beatEvery)
		f.Evidence = []sandbox.Evidence{DurationEvidence("last heartbeat", silence, beatSource, sig.LastBeatAt)}
	}
	return f
}

// flagEnding is S1-52 for one sandbox: its end was requested, and its provider does not complete it.
func flagEnding(s sandbox.Sandbox, t Thresholds, now time.Time) Flag {
	f := Flag{ID: "ending_long", Severity: Warning, Verdict: sandbox.False, Say: "terminating for more than " + sandbox.FormatElapsed(t.EndingAge)}
	switch s.State {
	case sandbox.StateUnknown, "":
		f.Verdict = sandbox.Unknown
	case sandbox.StateTerminating:
		verdict, e := endingLonger(s, t, now)
		if f.Verdict = verdict; e.What != "" {
			f.Evidence = []sandbox.Evidence{e}
		}
	default:
	}
	return f
}

// flagRunsAfterItsEnd is S1-60: a record says that the sandbox was stopped or has failed, and it
// answers. A record that says "running" cannot show it.
func flagRunsAfterItsEnd(s sandbox.Sandbox, sig Signals) Flag {
	f := Flag{ID: "runs_after_end", Severity: Critical, Verdict: sandbox.Unknown, Say: "its record says that it has ended, but it runs"}
	switch {
	case s.State == sandbox.StateUnknown, s.State == "":
	case !s.State.Ended() && s.State != sandbox.StateStopped:
		f.Verdict = sandbox.False
	case sig.Answers != "":
		f.Verdict = sig.Answers
	}
	if f.Verdict == sandbox.True {
		f.Evidence = []sandbox.Evidence{textEvidence("record", string(s.State), "provider", s.EndedAt), textEvidence(evidenceAnswers, "yes", "probe", time.Time{})}
	}
	return f
}

// runningOver is R11 (a symptom, to watch) and R27 (a red flag of the runbook), which have two
// limits.
func runningOver(id string, severity Severity, limit time.Duration, s sandbox.Sandbox, now time.Time) Flag {
	f := Flag{ID: id, Severity: severity, Weighed: true, Verdict: sandbox.False, Say: "running for more than " + sandbox.FormatElapsed(limit)}
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

// warningsInLog is R13. In a run that has succeeded a warning is no fault (S0-4).
func warningsInLog(s sandbox.Sandbox, sig Signals) Flag {
	f := Flag{ID: "resource_warnings", Severity: Warning, Verdict: sandbox.Unknown, Say: "the log warns of memory or another resource"}
	if succeeded(s) {
		f.Severity = Info
	}
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
	f := Flag{ID: "no_task", Severity: Info, Verdict: sandbox.Unknown, Say: "it belongs to no task and no agent"}
	switch {
	case s.TaskID != "" || s.AgentType != "":
		f.Verdict = sandbox.False
	case sig.TracksTasks:
		f.Verdict = sandbox.True
	}
	return f
}

func repeatedTimeouts(sig Signals, t Thresholds) Flag {
	f := Flag{ID: "repeated_timeouts", Severity: Warning, Verdict: sandbox.Unknown, Say: fmt.Sprintf("hit a time limit %d times or more", t.RepeatTimeouts)}
	if sig.TimeLimitsHit != nil {
		f.Verdict = sandbox.VerdictOf(*sig.TimeLimitsHit >= t.RepeatTimeouts)
		f.Evidence = []sandbox.Evidence{NumberEvidence("time limits hit", float64(*sig.TimeLimitsHit), "", "history", time.Time{})}
	}
	return f
}

func flagSilent(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) Flag {
	f := Flag{ID: "silent", Severity: Warning, Weighed: true, Verdict: sandbox.Unknown, Say: "silent for more than " + sandbox.FormatElapsed(t.Inactivity)}
	sign := latestSign(s, sig, now)
	switch {
	case s.State != sandbox.StateRunning && s.State != sandbox.StateUnknown && s.State != "":
		f.Verdict = sandbox.False
	case sign.silentLonger(t.Inactivity), sign.seenWithin(t.Inactivity):
		f.Verdict = sandbox.VerdictOf(!sign.seenWithin(t.Inactivity) && s.State == sandbox.StateRunning)
		f.Evidence = []sandbox.Evidence{DurationEvidence("silence", sign.silence, sign.source, now)}
	case sign.known:
		f.Evidence = []sandbox.Evidence{DurationEvidence("last activity", sign.ago, sign.source, now)}
	}
	return f
}

func flagFinished(s sandbox.Sandbox, sig Signals) Flag {
	f := Flag{ID: "task_done", Severity: Warning, Verdict: sandbox.Unknown, Say: "its task is done but it still runs"}
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
