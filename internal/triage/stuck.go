package triage

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Reason is one word of why a sandbox is stuck or is not.
type Reason string

// The closed list of reasons.
const (
	ReasonAge          Reason = "age"          // running longer than the stuck age
	ReasonProvisioning Reason = "provisioning" // in provisioning longer than its limit
	ReasonSilent       Reason = "silent"       // no sign of work for longer than the inactivity limit
	ReasonInactive     Reason = "inactive"     // the provider says that it does nothing
	ReasonBusyLoop     Reason = "busy_loop"    // a full processor and nothing to show for it
	ReasonRepeating    Reason = "repeating"    // the same line again and again
	ReasonHungIO       Reason = "hung_io"      // waits for something outside
	ReasonLeak         Reason = "leak"         // memory grows and is near its limit
	ReasonNoAnswer     Reason = "no_answer"    // nothing inside answers

	ReasonNotLooked    Reason = "not_looked"    // the record leaves it open, and nobody has asked the sandbox itself
	ReasonSourceFailed Reason = "source_failed" // a source that may have seen work does not answer

	ReasonAgeOnly         Reason = "age_only"         // the profile judges by age where activity is unknown
	ReasonYoung           Reason = "young"            // not old enough
	ReasonShowsLife       Reason = "shows_life"       // old, but at work
	ReasonKept            Reason = "kept"             // sbx itself keeps it, for a time that is not over
	ReasonFinished        Reason = "finished"         // its task is over, or its program has exited, and it runs on
	ReasonWaiting         Reason = "waiting"          // its agent is done and waits: idle, not stuck (ACCEPTANCE S2-35)
	ReasonNotRunning      Reason = "not_running"      // ended, paused or stopped
	ReasonAgeUnknown      Reason = "age_unknown"      // no age, so no judgement
	ReasonActivityUnknown Reason = "activity_unknown" // old, and nothing tells whether it works
	ReasonStateUnknown    Reason = "state_unknown"
	ReasonEnding          Reason = "ending" // asked to end; its end is the provider's to finish
)

// stuckness says whether a sandbox is stuck, and why.
type stuckness struct {
	verdict  sandbox.Verdict
	reasons  []Reason
	evidence []sandbox.Evidence
}

// joined writes reasons as one text: "age, silent".
func joined(reasons []Reason) string {
	texts := make([]string, len(reasons))
	for i, r := range reasons {
		texts[i] = string(r)
	}
	return strings.Join(texts, ", ")
}

// judgeStuck says whether a sandbox is stuck: provisioning for too long, or running
// over the stuck age without a sign of life. Age alone never condemns what shows life
// (ACCEPTANCE S2-26); what cannot be known is Unknown (DESIGN section 7). A
// missing task or agent is a flag and no reason here. A running sandbox is stuck only
// once somebody has looked at it: its record cannot tell what a look would show.
func judgeStuck(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) stuckness {
	switch s.State {
	case sandbox.StateProvisioning:
		return provisioning(s, t, now)
	case sandbox.StateRunning:
		return running(s, sig, t, now)
	case sandbox.StateTerminating:
		return stuckBecause(sandbox.Unknown, ReasonEnding)
	case sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminated, sandbox.StateFailed:
		return stuckBecause(sandbox.False, ReasonNotRunning)
	case sandbox.StateUnknown:
	}
	return stuckBecause(sandbox.Unknown, ReasonStateUnknown)
}

func stuckBecause(v sandbox.Verdict, reasons ...Reason) stuckness {
	return stuckness{verdict: v, reasons: reasons}
}

// over compares an age with a limit, strictly. First sight is a lower bound of
// the age: it may prove "over", and never "not over".
func over(s sandbox.Sandbox, limit time.Duration, now time.Time) (sandbox.Verdict, sandbox.Evidence) {
	age, source := s.Age(now)
	if source == sandbox.AgeUnknown {
		return sandbox.Unknown, sandbox.Evidence{}
	}
	e := seconds("age", age, string(source), now)
	if age <= limit && source == sandbox.AgeFirstSeen {
		return sandbox.Unknown, e
	}
	return sandbox.VerdictOf(age > limit), e
}

func provisioning(s sandbox.Sandbox, t Thresholds, now time.Time) stuckness {
	verdict, e := over(s, t.ProvisioningAge, now)
	switch verdict {
	case sandbox.True:
		return stuckness{verdict, []Reason{ReasonProvisioning}, []sandbox.Evidence{e}}
	case sandbox.False:
		return stuckBecause(verdict, ReasonYoung)
	case sandbox.Unknown:
	}
	return stuckBecause(sandbox.Unknown, ReasonAgeUnknown)
}

func running(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) stuckness {
	verdict, age := over(s, t.StuckAge, now)
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
		// It says why nothing happens, and condemns nothing by itself: somebody may go on
		// inside. What condemns are the signs of life, as without it.
		reasons, evidence = append(reasons, ReasonFinished), append(evidence, sig.FinishedBy)
	}
	switch {
	case lives == sandbox.True:
		return stuckness{sandbox.False, []Reason{ReasonShowsLife}, evidence}
	case !sig.looked():
		return stuckness{sandbox.Unknown, append([]Reason{ReasonNotLooked}, reasons...), evidence}
	case lives == sandbox.False:
	case t.AgeOnly && !sig.LookFailed && !sig.SourceFailed:
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

// judgeLife says whether a running sandbox shows a sign of life, and by what. False needs
// positive evidence: silence that a source would have broken, a provider's word, or
// figures that no healthy program shows. A full processor excuses silence only for
// BusySilence, and not at all when the log repeats one line. A resting processor
// alone proves nothing: agents wait for answers.
func judgeLife(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) (lives sandbox.Verdict, reasons []Reason, evidence []sandbox.Evidence) {
	lives, reasons, evidence = life(s, sig, t, now)
	if lives != sandbox.True && sig.SourceFailed {
		return sandbox.Unknown, []Reason{ReasonSourceFailed}, evidence
	}
	return lives, reasons, evidence
}

func life(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) (lives sandbox.Verdict, reasons []Reason, evidence []sandbox.Evidence) {
	sign := silence(s, sig, now)
	evidence = lifeEvidence(sign, sig, now)
	switch {
	case sig.busy(t) && sign.longerThan(t.BusySilence):
		return sandbox.False, []Reason{ReasonSilent, ReasonBusyLoop}, evidence
	case sig.busy(t) && sig.repeats(t):
		return sandbox.False, []Reason{ReasonRepeating, ReasonBusyLoop}, evidence
	case s.Activity == sandbox.True, sign.within(t.Inactivity):
		return sandbox.True, nil, evidence
	case sig.busyThroughout(t) && !sign.within(t.BusySilence):
		return sandbox.False, []Reason{ReasonBusyLoop}, evidence
	case sig.works(t):
		return sandbox.True, nil, evidence
	}
	if s.Activity == sandbox.False {
		reasons = append(reasons, ReasonInactive)
	}
	if sign.proven() {
		reasons = append(reasons, ReasonSilent)
	}
	if sig.leaks(t) {
		reasons = append(reasons, ReasonLeak)
	}
	if sig.Answers == sandbox.False {
		reasons = append(reasons, ReasonNoAnswer)
	}
	waits := sig.waits(t) && sig.Finished != sandbox.True // what is done rests because of it
	if len(reasons) == 0 {
		if waits {
			reasons = []Reason{ReasonHungIO} // a hint for the reader, which proves nothing
		}
		return sandbox.Unknown, reasons, evidence
	}
	if waits {
		reasons = append(reasons, ReasonHungIO)
	}
	return sandbox.False, slices.Clip(reasons), evidence
}

// lifeEvidence are the figures that Life compares.
func lifeEvidence(sign lastSign, sig Signals, now time.Time) []sandbox.Evidence {
	var all []sandbox.Evidence
	switch {
	case sign.proven():
		all = append(all, seconds("silence", sign.ago, sign.source, now))
	case sign.known: // no source would have shown a later sign
		all = append(all, seconds("last sign of life", sign.ago, sign.source, now))
	}
	if tr := sig.Trend; tr != nil && tr.CPUPercent != nil {
		all = append(all, number("cpu", *tr.CPUPercent, "%", tr.Source, tr.At))
		if tr.BusyFor > 0 {
			all = append(all, seconds("busy for", tr.BusyFor, tr.Source, tr.At))
		}
	}
	if sig.Trend != nil {
		if share, known := sig.Trend.near(); known {
			all = append(all, number("memory", share*100, "% of its limit", sig.Trend.Source, sig.Trend.At))
		}
	}
	if sig.Processes != nil {
		all = append(all, number("processes", float64(*sig.Processes), "", "process list", now))
	}
	if sig.Answers == sandbox.False {
		all = append(all, words("answers", "no", "probe", now))
	}
	return all
}
