package triage

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Reason is a reason for being stuck or not.
type Reason string

// The closed list of reasons.
const (
	ReasonAge          Reason = "age"          // running longer than the stuck age
	ReasonProvisioning Reason = "provisioning" // in provisioning longer than its limit
	ReasonSilent       Reason = "silent"       // no sign of work for longer than the inactivity limit
	ReasonInactive     Reason = "inactive"     // the provider says that it does nothing
	ReasonBusyLoop     Reason = "busy_loop"    // the processor is at its limit without visible work
	ReasonRepeating    Reason = "repeating"    // the log repeats one line
	ReasonHungIO       Reason = "hung_io"      // waits for something outside
	ReasonLeak         Reason = "leak"         // memory grows and is near its limit
	ReasonNoAnswer     Reason = "no_answer"    // nothing inside answers

	ReasonMissing Reason = "missing" // its provider lists it and answers that it does not exist

	ReasonNotLooked    Reason = "not_looked"    // the record does not decide, and the sandbox itself was not asked
	ReasonSourceFailed Reason = "source_failed" // a source that may have seen work does not answer

	ReasonAgeOnly         Reason = "age_only"         // the profile judges by age where activity is unknown
	ReasonYoung           Reason = "young"            // not old enough
	ReasonShowsLife       Reason = "shows_life"       // old, but at work
	ReasonKept            Reason = "kept"             // sbx keeps it until a time that has not passed
	ReasonFinished        Reason = "finished"         // its task is over, or its program has exited, and it still runs
	ReasonWaiting         Reason = "waiting"          // its agent is done and waits: idle, not stuck (S2-35)
	ReasonNotRunning      Reason = "not_running"      // ended, paused or stopped
	ReasonAgeUnknown      Reason = "age_unknown"      // without an age there is no verdict
	ReasonActivityUnknown Reason = "activity_unknown" // old, and no source shows whether it works
	ReasonStateUnknown    Reason = "state_unknown"
	ReasonEnding          Reason = "ending" // its end was requested; stuck where the provider does not complete it within its limit
)

// stuckness is the verdict whether a sandbox is stuck, with its reasons.
type stuckness struct {
	verdict  sandbox.Verdict
	reasons  []Reason
	evidence []sandbox.Evidence
}

// joinReasons formats reasons as one text: "age, silent".
func joinReasons(reasons []Reason) string {
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = string(r)
	}
	return strings.Join(texts, ", ")
}

// judgeStuck decides whether a sandbox is stuck: provisioning or terminating for too long, or
// running over the stuck age without a sign of life. Age alone is no reason for a sandbox that
// shows life (S2-26); what cannot be known is Unknown. A missing task or agent is a flag
// and no reason here. A running sandbox is stuck only if the sandbox itself was asked.
func judgeStuck(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) stuckness {
	switch s.State {
	case sandbox.StateProvisioning:
		return judgeProvisioning(s, t, now)
	case sandbox.StateRunning:
		return judgeRunning(s, sig, t, now)
	case sandbox.StateTerminating:
		return judgeEnding(s, t, now)
	case sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminated, sandbox.StateFailed:
		return stuckBecause(sandbox.False, ReasonNotRunning)
	case sandbox.StateUnknown:
	}
	return stuckBecause(sandbox.Unknown, ReasonStateUnknown)
}

func stuckBecause(v sandbox.Verdict, reasons ...Reason) stuckness {
	return stuckness{verdict: v, reasons: reasons}
}

// olderThan compares an age with a limit (strictly). Time since first sight is a lower
// bound of the age: it can prove "older" and never "not older".
func olderThan(s sandbox.Sandbox, limit time.Duration, now time.Time) (sandbox.Verdict, sandbox.Evidence) {
	age, source := s.Age(now)
	if source == sandbox.AgeUnknown {
		return sandbox.Unknown, sandbox.Evidence{}
	}
	e := DurationEvidence("age", age, string(source), now)
	if age <= limit && source == sandbox.AgeFirstSeen {
		return sandbox.Unknown, e
	}
	return sandbox.VerdictOf(age > limit), e
}

func judgeProvisioning(s sandbox.Sandbox, t Thresholds, now time.Time) stuckness {
	verdict, e := olderThan(s, t.ProvisioningAge, now)
	switch verdict {
	case sandbox.True:
		return stuckness{verdict, []Reason{ReasonProvisioning}, []sandbox.Evidence{e}}
	case sandbox.False:
		return stuckBecause(verdict, ReasonYoung)
	case sandbox.Unknown:
	}
	return stuckBecause(sandbox.Unknown, ReasonAgeUnknown)
}

// judgeEnding never says that an end goes well: until its limit, and where nobody knows since when, it is unknown.
func judgeEnding(s sandbox.Sandbox, t Thresholds, now time.Time) stuckness {
	verdict, e := endingLonger(s, t, now)
	if verdict != sandbox.True {
		return stuckBecause(sandbox.Unknown, ReasonEnding)
	}
	return stuckness{verdict, []Reason{ReasonEnding}, []sandbox.Evidence{e}}
}

// endingLonger compares the time of an end with its limit (strictly). A first look gives a lower bound, as in olderThan.
func endingLonger(s sandbox.Sandbox, t Thresholds, now time.Time) (sandbox.Verdict, sandbox.Evidence) {
	since, source := s.Ending(now)
	if source == sandbox.AgeUnknown {
		return sandbox.Unknown, sandbox.Evidence{}
	}
	e := DurationEvidence("terminating", since, string(source), now)
	if since <= t.EndingAge && source == sandbox.AgeFirstSeen {
		return sandbox.Unknown, e
	}
	return sandbox.VerdictOf(since > t.EndingAge), e
}

func judgeRunning(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) stuckness {
	verdict, age := olderThan(s, t.StuckAge, now)
	switch {
	case s.KeptUntil.After(now):
		return stuckBecause(sandbox.False, ReasonKept)
	case sig.Waits == sandbox.True:
		return stuckBecause(sandbox.False, ReasonWaiting)
	case verdict == sandbox.False:
		return stuckBecause(sandbox.False, ReasonYoung)
	case verdict == sandbox.Unknown:
		return stuckBecause(sandbox.Unknown, ReasonAgeUnknown)
	}
	lives, reasons, evidence := judgeLife(s, sig, t, now)
	if sig.Finished == sandbox.True && lives != sandbox.True {
		// A finished task explains why nothing happens and is no reason by itself, since
		// other work may go on inside. The signs of life decide.
		reasons, evidence = append(reasons, ReasonFinished), append(evidence, sig.FinishedBy)
	}
	switch {
	case lives == sandbox.True:
		return stuckness{sandbox.False, []Reason{ReasonShowsLife}, evidence}
	case !sig.anyObserved():
		return stuckness{sandbox.Unknown, append([]Reason{ReasonNotLooked}, reasons...), evidence}
	case lives == sandbox.False:
	case t.AgeOnly && !sig.SourceFailed && !sig.LookFailed:
		reasons = slices.Concat([]Reason{ReasonAgeOnly}, slices.DeleteFunc(reasons, func(r Reason) bool { return r != ReasonFinished }))
	default:
		return stuckness{sandbox.Unknown, append([]Reason{ReasonActivityUnknown}, reasons...), evidence}
	}
	return stuckness{
		verdict:  sandbox.True,
		reasons:  append([]Reason{ReasonAge}, reasons...),
		evidence: append([]sandbox.Evidence{age}, evidence...),
	}
}

// judgeLife decides whether a running sandbox shows a sign of life, and by what. False
// needs positive evidence: silence of a source that would have shown work, the provider's
// report, or figures that no healthy program has. Despite silence, a
// processor at its limit counts as work for BusySilence only, and not when the log repeats one
// line. It is no sign either where age decides and the operations do not grow: such a figure may be
// the program's own report. An idle processor alone proves nothing: agents wait for answers.
func judgeLife(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) (lives sandbox.Verdict, reasons []Reason, evidence []sandbox.Evidence) {
	lives, reasons, evidence = judgeLifeSigns(s, sig, t, now)
	if lives == sandbox.True { // a probe that nothing answered is no sign of life
		evidence = slices.DeleteFunc(evidence, func(e sandbox.Evidence) bool { return e.What == evidenceAnswers })
	}
	if lives != sandbox.True && (sig.SourceFailed || sig.LookFailed) {
		return sandbox.Unknown, []Reason{ReasonSourceFailed}, evidence
	}
	return lives, reasons, evidence
}

func judgeLifeSigns(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) (lives sandbox.Verdict, reasons []Reason, evidence []sandbox.Evidence) {
	sign := latestSign(s, sig, now)
	evidence = lifeEvidence(sign, sig, now)
	switch {
	case sig.cpuBusy(t) && sign.silentLonger(t.BusySilence):
		return sandbox.False, []Reason{ReasonSilent, ReasonBusyLoop}, evidence
	case sig.cpuBusy(t) && sig.repeatsLines(t):
		return sandbox.False, []Reason{ReasonRepeating, ReasonBusyLoop}, evidence
	case s.Activity == sandbox.True, sign.seenWithin(t.Inactivity):
		return sandbox.True, nil, evidence
	case sig.busyThroughout(t) && !sign.seenWithin(t.BusySilence):
		return sandbox.False, []Reason{ReasonBusyLoop}, evidence
	case t.AgeOnly && sig.busyWithoutOperations(t) && !sign.seenWithin(t.BusySilence):
		return sandbox.Unknown, nil, evidence
	case sig.showsWork(t) && !sig.Trend.faint(t):
		return sandbox.True, nil, evidence
	}
	if s.Activity == sandbox.False {
		reasons = append(reasons, ReasonInactive)
	}
	if sign.provenSilent() {
		reasons = append(reasons, ReasonSilent)
	}
	if sig.Exists == sandbox.False {
		reasons, evidence = append(reasons, ReasonMissing), append(evidence, doesNotExist(now))
	}
	if sig.leaksMemory(t) {
		reasons = append(reasons, ReasonLeak)
	}
	if sig.Answers == sandbox.False {
		reasons = append(reasons, ReasonNoAnswer)
	}
	waits := sig.waitsIdle(t) && sig.Finished != sandbox.True // a finished program is idle for that reason
	if len(reasons) == 0 {
		if sig.showsWork(t) { // faint, and nothing proves that it does not work
			return sandbox.True, nil, evidence
		}
		if waits {
			reasons = []Reason{ReasonHungIO} // a hint that proves nothing
		}
		return sandbox.Unknown, reasons, evidence
	}
	if waits {
		reasons = append(reasons, ReasonHungIO)
	}
	return sandbox.False, slices.Clip(reasons), evidence
}

// evidenceAnswers is whether a probe inside was answered.
const evidenceAnswers = "answers"

// lifeEvidence lists the figures that judgeLife compares.
func lifeEvidence(sign lastSign, sig Signals, now time.Time) []sandbox.Evidence {
	var all []sandbox.Evidence
	switch {
	case sign.provenSilent():
		all = append(all, DurationEvidence("silence", sign.silence, sign.source, now))
	case sign.known: // no source would have shown a later sign
		all = append(all, DurationEvidence("last activity", sign.ago, sign.source, now))
	}
	if tr := sig.Trend; tr != nil && tr.CPUPercent != nil {
		all = append(all, NumberEvidence("cpu", *tr.CPUPercent, "%", tr.Source, tr.At))
		if tr.BusyFor > 0 {
			all = append(all, DurationEvidence("busy for", tr.BusyFor, tr.Source, tr.At))
		}
	}
	if sig.Trend != nil {
		if share, known := sig.Trend.memoryShare(); known {
			all = append(all, NumberEvidence("memory", share*100, "% of the limit", sig.Trend.Source, sig.Trend.At))
		}
	}
	if sig.Processes != nil && *sig.Processes > 0 {
		all = append(all, NumberEvidence("processes", float64(*sig.Processes), "", "process list", now))
	}
	if sig.Answers == sandbox.False {
		all = append(all, textEvidence(evidenceAnswers, "no", "probe", now))
	}
	return all
}
