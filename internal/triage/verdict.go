package triage

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Verdict is the one judgement of a sandbox. Whatever verb says how a sandbox fares
// reads it from here, so that the same sandbox has the same word everywhere. Where
// nobody looked at the sandbox itself, a running one is never held to be stuck.
type Verdict struct {
	Stuck    sandbox.Verdict
	Activity sandbox.Verdict // whether it shows life now
	Words    []Reason        // why it is stuck or is not, in words of the closed list
	// Cause is what is wrong with it, and CauseNone where nothing is: of what has ended
	// the cause of its end, else how it behaves. That nobody owns it is no behaviour;
	// Findings tell.
	Cause      sandbox.Cause
	Confidence sandbox.Confidence
	Reason     string // one sentence
	Signs      string // of life or of its absence, of what runs: "silent (silence 14m, cpu 0%)"
	Evidence   []sandbox.Evidence
	Pattern    UsagePattern
	Findings   []Finding // every cause that is a hint at least, the likeliest first
	Looked     bool      // somebody asked the sandbox itself, whatever came of it
}

// Judge makes the judgement of one sandbox by its record and by what was observed.
func Judge(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) Verdict {
	if !s.KeptUntil.After(now) { // by this machine's clock; everything else is by the sandbox's
		s.KeptUntil = time.Time{}
	}
	now, s.ClockSkew = s.Clock(now), 0
	stuck := judgeStuck(s, sig, t, now)
	v := Verdict{
		Stuck: stuck.verdict, Words: stuck.reasons, Evidence: stuck.evidence,
		Activity: sandbox.Unknown, Looked: sig.looked(), Confidence: sandbox.ConfidenceUnknown,
	}
	v.live(s, sig, t, now)
	if v.Looked || s.Exit != nil { // a record without an exit names no cause
		v.Findings = slices.DeleteFunc(rankCauses(s, sig, t, now), func(f Finding) bool { return f.Confidence == sandbox.ConfidenceUnknown })
	}
	v.name(s)
	v.Pattern = v.pattern(sig, t)
	v.Reason = v.sentence(s, t, now)
	return v
}

// Say joins the words: "age, silent".
func (v Verdict) Say() string { return joined(v.Words) }

// Unjudged says that it is not known whether the sandbox is stuck. One that was asked
// to end is nobody's to judge.
func (v Verdict) Unjudged() bool {
	return v.Stuck == sandbox.Unknown && !slices.Contains(v.Words, ReasonEnding)
}

// NeedsLook says that the record alone leaves it open whether the sandbox is stuck.
func (v Verdict) NeedsLook() bool {
	return v.Stuck == sandbox.Unknown && slices.Contains(v.Words, ReasonNotLooked)
}

// live says whether a sandbox shows life now, and by what; what does not run does not.
func (v *Verdict) live(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) {
	switch s.State {
	case sandbox.StateRunning:
		lives, reasons, evidence := judgeLife(s, sig, t, now)
		v.Activity, v.Signs = lives, joined(reasons)+evidenceOf(evidence)
		if len(v.Evidence) == 0 {
			v.Evidence = evidence
		}
	case sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminated, sandbox.StateFailed:
		v.Activity = sandbox.False
	case sandbox.StateProvisioning, sandbox.StateTerminating, sandbox.StateUnknown:
	}
}

// name finds the cause. What condemned a sandbox names its cause before any ranking;
// what shows life while it runs can still loop or leak, and nothing else.
func (v *Verdict) name(s sandbox.Sandbox) {
	switch {
	case s.State.Ended():
		v.take(func(f Finding) bool { return f.ID == exitFinding })
	case s.State != sandbox.StateRunning && s.State != sandbox.StateProvisioning, slices.Contains(v.Words, ReasonKept):
	case v.condemned(ReasonProvisioning):
		v.claim(sandbox.CauseProvisioning)
	case v.condemned(ReasonLeak):
		v.claim(sandbox.CauseLeak)
	case v.condemned(ReasonBusyLoop) || v.condemned(ReasonRepeating):
		v.claim(sandbox.CauseBusyLoop)
	case v.condemned(ReasonNoAnswer):
		v.claim(sandbox.CauseNoAnswer)
	case v.Activity == sandbox.True:
		v.take(func(f Finding) bool {
			return f.Cause == sandbox.CauseLeak || f.Cause == sandbox.CauseBusyLoop && f.Confidence == sandbox.Probable
		})
	case v.take(Finding.behaviour) && v.Cause != sandbox.CauseSilent:
	case v.condemned(ReasonSilent) || v.condemned(ReasonInactive):
		v.claim(sandbox.CauseSilent)
	case v.Cause == sandbox.CauseSilent:
	case slices.Contains(v.Words, ReasonHungIO):
		v.Cause, v.Confidence = sandbox.CauseHungIO, sandbox.Hint
	case v.Stuck == sandbox.True || v.Unjudged():
		v.Cause = sandbox.CauseUnknown
	}
}

// exitFinding is the ID of the finding that an exit proves.
const exitFinding = "exit"

// behaviour says that a finding is about what the sandbox does, not about who owns it
// or what its provider lacks.
func (f Finding) behaviour() bool {
	switch f.Cause {
	case sandbox.CauseLeak, sandbox.CauseBusyLoop, sandbox.CauseHungIO, sandbox.CauseSilent:
		return f.ID != exitFinding
	default:
		return false
	}
}

// condemned says that the sandbox is stuck for this reason among others.
func (v *Verdict) condemned(r Reason) bool {
	return v.Stuck == sandbox.True && slices.Contains(v.Words, r)
}

// take makes the likeliest fitting finding the cause; false = there is none.
func (v *Verdict) take(fits func(Finding) bool) bool {
	i := slices.IndexFunc(v.Findings, fits)
	if i < 0 {
		return false
	}
	v.Cause, v.Confidence = v.Findings[i].Cause, v.Findings[i].Confidence
	return true
}

// claim names what positive evidence has condemned: it is probable at least.
func (v *Verdict) claim(c sandbox.Cause) {
	v.Cause, v.Confidence = c, sandbox.Probable
}

// pattern is what the use looks like: the cause where that is a pattern, so that the
// two never contradict each other, else the figures' own.
func (v *Verdict) pattern(sig Signals, t Thresholds) UsagePattern {
	switch v.Cause {
	case sandbox.CauseBusyLoop:
		return PatternBusyLoop
	case sandbox.CauseHungIO:
		return PatternHungIO
	case sandbox.CauseLeak:
		return PatternLeak
	default:
	}
	if sig.Trend == nil {
		return PatternUnknown
	}
	return sig.Trend.pattern(t)
}
