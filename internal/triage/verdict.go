// Package triage diagnoses a sandbox: log patterns, usage patterns, flags, reasons
// for being stuck, the classification of an exit, and causes ranked by evidence.
//
// It holds pure rules. Samples, log lines, history, thresholds and the current time are
// parameters, so the same rules serve list, inspect, top, the drill and recorded
// incidents. Missing data makes a verdict unknown, never false and never true. The
// package has no provider, clock, file, output or state.
package triage

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Verdict is the one judgement of a sandbox, used by every command, so that the same
// sandbox has the same verdict everywhere. A running sandbox that was not itself asked is
// never stuck.
type Verdict struct {
	Stuck    sandbox.Verdict
	Activity sandbox.Verdict // whether it shows life now
	Reasons  []Reason        // why it is stuck or is not
	// Cause is what is wrong, CauseNone where nothing is: of an ended sandbox the cause of
	// its end, else how it behaves. A missing owner is no behaviour and only in Findings.
	Cause      sandbox.Cause
	Confidence sandbox.Confidence
	Reason     string // one sentence
	Signs      string // signs of life, or their absence, of a running sandbox: "silent (silence 14m, cpu 0%)"
	Evidence   []sandbox.Evidence
	Pattern    UsagePattern
	Findings   []Finding // every cause that is a hint at least, the likeliest first
	Looked     bool      // the sandbox itself was asked, whatever the result
}

// WithCause is the reason of a verdict behind its cause, as a plan shows why it ends a sandbox: "busy loop (age 30m, cpu
// 98%)". A reason that names the cause does not name it twice.
func WithCause(cause, reason string) string {
	reason = strings.TrimPrefix(reason, "stuck: ")
	if _, rest, names := strings.Cut(reason, cause); names && cause != "" {
		return cause + rest
	}
	return strings.TrimPrefix(cause+": "+reason, ": ")
}

// Judge decides by the record of a sandbox and by what was observed.
func Judge(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) Verdict {
	if !s.KeptUntil.After(now) { // by this machine's clock; all other times are by the sandbox's
		s.KeptUntil = time.Time{}
	}
	now, s.ClockSkew = s.Clock(now), 0
	stuck := judgeStuck(s, sig, t, now)
	v := Verdict{
		Stuck: stuck.verdict, Reasons: stuck.reasons, Evidence: stuck.evidence,
		Activity: sandbox.Unknown, Looked: sig.anyObserved(), Confidence: sandbox.ConfidenceUnknown,
	}
	v.setActivity(s, sig, t, now)
	switch {
	case v.Looked || s.Exit != nil:
		v.Findings = slices.DeleteFunc(rankCauses(s, sig, t, now), func(f Finding) bool { return f.Confidence == sandbox.ConfidenceUnknown })
	default: // a record without an exit names no other cause
		v.Findings = reportedTroubles(s)
	}
	v.setCause(s)
	v.Pattern = v.usagePattern(sig, t)
	v.Reason = v.formatSentence(s, t, now)
	return v
}

// Say joins the reasons: "age, silent".
func (v Verdict) Say() string { return joinReasons(v.Reasons) }

// Unjudged reports whether it is unknown that the sandbox is stuck. A sandbox whose end was
// requested is judged by the time of that alone.
func (v Verdict) Unjudged() bool {
	return v.Stuck == sandbox.Unknown && !slices.Contains(v.Reasons, ReasonEnding)
}

// Suspected reports whether a sandbox that is not known to be stuck has a likely cause of trouble.
func (v Verdict) Suspected() bool {
	likely := v.Confidence == sandbox.Probable || v.Confidence == sandbox.Certain
	return v.Stuck != sandbox.True && likely && v.Cause != sandbox.CauseNone && v.Cause != sandbox.CauseUnknown
}

// NeedsLook reports whether the record alone does not decide and the sandbox was not asked.
func (v Verdict) NeedsLook() bool {
	return v.Stuck == sandbox.Unknown && slices.Contains(v.Reasons, ReasonNotLooked)
}

// setActivity records whether a sandbox shows life now, and by what signs.
func (v *Verdict) setActivity(s sandbox.Sandbox, sig Signals, t Thresholds, now time.Time) {
	switch s.State {
	case sandbox.StateRunning:
		lives, reasons, evidence := judgeLife(s, sig, t, now)
		v.Activity, v.Signs = lives, joinReasons(reasons)+formatEvidence(evidence)
		if len(v.Evidence) == 0 {
			v.Evidence = evidence
		}
	case sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminated, sandbox.StateFailed:
		v.Activity = sandbox.False
	case sandbox.StateProvisioning, sandbox.StateTerminating, sandbox.StateUnknown:
	}
}

// setCause finds the cause. The reason for being stuck precedes any ranking; a running
// sandbox that shows life can loop or leak, and nothing else.
func (v *Verdict) setCause(s sandbox.Sandbox) {
	switch {
	case s.State.Ended():
		v.takeFinding(func(f Finding) bool { return f.ID == exitFinding })
	case v.stuckFor(ReasonEnding):
		v.setProbableCause(sandbox.CauseEnding)
	case s.State != sandbox.StateRunning && s.State != sandbox.StateProvisioning, slices.Contains(v.Reasons, ReasonKept):
	case s.State == sandbox.StateProvisioning && v.takeFinding(Finding.isReported):
	case v.stuckFor(ReasonProvisioning):
		v.setProbableCause(sandbox.CauseProvisioning)
	case v.stuckFor(ReasonMissing):
		v.setProbableCause(sandbox.CauseGhost)
	case v.stuckFor(ReasonLeak):
		v.setProbableCause(sandbox.CauseLeak)
	case v.stuckFor(ReasonBusyLoop) || v.stuckFor(ReasonRepeating):
		v.setProbableCause(sandbox.CauseBusyLoop)
	case v.stuckFor(ReasonNoAnswer):
		v.setProbableCause(sandbox.CauseNoAnswer)
	case v.takeFinding(Finding.isReported):
	case v.Activity == sandbox.True:
		v.takeFinding(func(f Finding) bool {
			return f.Cause == sandbox.CauseLeak || f.Cause == sandbox.CauseBusyLoop && f.Confidence == sandbox.Probable
		})
	case v.takeFinding(Finding.isBehaviour) && v.Cause != sandbox.CauseSilent:
	case v.stuckFor(ReasonSilent) || v.stuckFor(ReasonInactive):
		v.setProbableCause(sandbox.CauseSilent)
	case v.Cause == sandbox.CauseSilent:
	case slices.Contains(v.Reasons, ReasonHungIO):
		v.Cause, v.Confidence = sandbox.CauseHungIO, sandbox.Hint
	case v.Stuck == sandbox.True || v.Unjudged():
		v.Cause = sandbox.CauseUnknown
	}
}

// exitFinding is the ID of the finding that an exit proves.
const exitFinding = "exit"

// isBehaviour reports whether a finding is about what the sandbox does, not about its
// owner or its provider's resources.
func (f Finding) isBehaviour() bool {
	switch f.Cause {
	case sandbox.CauseLeak, sandbox.CauseBusyLoop, sandbox.CauseHungIO, sandbox.CauseSilent:
		return f.ID != exitFinding
	default:
		return false
	}
}

// stuckFor reports whether the sandbox is stuck for this reason among others.
func (v *Verdict) stuckFor(r Reason) bool {
	return v.Stuck == sandbox.True && slices.Contains(v.Reasons, r)
}

// takeFinding makes the likeliest matching finding the cause; false = there is none.
func (v *Verdict) takeFinding(fits func(Finding) bool) bool {
	i := slices.IndexFunc(v.Findings, fits)
	if i < 0 {
		return false
	}
	v.Cause, v.Confidence = v.Findings[i].Cause, v.Findings[i].Confidence
	return true
}

func (v *Verdict) setProbableCause(c sandbox.Cause) {
	v.Cause, v.Confidence = c, sandbox.Probable
}

// usagePattern is the cause where that is a pattern, so that the two never contradict each
// other, else the pattern of the figures.
func (v *Verdict) usagePattern(sig Signals, t Thresholds) UsagePattern {
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
	return sig.Trend.usagePattern(t)
}

func (v *Verdict) formatSentence(s sandbox.Sandbox, t Thresholds, now time.Time) string {
	cause := causeWords(v.Cause)
	switch {
	case s.State.Ended():
		return "it has ended" + joinIfAny(": ", cause)
	case slices.Contains(v.Reasons, ReasonKept):
		return s.KeptReason()
	case slices.Contains(v.Reasons, ReasonWaiting):
		return "not stuck: its agent is done and waits"
	case slices.Contains(v.Reasons, ReasonProvisioning):
		return "stuck in provisioning for more than " + sandbox.FormatElapsed(t.ProvisioningAge) + v.evidenceText()
	case v.stuckFor(ReasonEnding):
		return "stuck in its end for more than " + sandbox.FormatElapsed(t.EndingAge) + v.evidenceText()
	case slices.Contains(v.Reasons, ReasonAgeOnly):
		text := "stuck by age only, as the profile is configured: over " + sandbox.FormatElapsed(t.StuckAge)
		if v.Cause != sandbox.CauseUnknown {
			text += "; " + v.confidencePrefix() + cause
		}
		return text + v.evidenceText()
	case v.Stuck == sandbox.True:
		return "stuck: " + v.finishedPrefix() + v.confidencePrefix() + cause + v.evidenceText()
	case v.Stuck == sandbox.False && s.State == sandbox.StateRunning:
		return v.healthySentence(t, cause)
	case v.Stuck == sandbox.False:
		return "it is " + string(s.State)
	}
	return v.unjudgedSentence(s, now, cause)
}

// healthySentence is the sentence for a running sandbox that is not stuck.
func (v *Verdict) healthySentence(t Thresholds, cause string) string {
	text := "not stuck: it is active"
	if slices.Contains(v.Reasons, ReasonYoung) {
		text = "not stuck: not older than " + sandbox.FormatElapsed(t.StuckAge)
	}
	if cause != "" {
		return text + "; but " + v.confidencePrefix() + cause + formatEvidence(v.causeEvidence())
	}
	return text + v.evidenceText()
}

// unjudgedSentence is the sentence for a sandbox that cannot be judged.
func (v *Verdict) unjudgedSentence(s sandbox.Sandbox, now time.Time, cause string) string {
	has := func(r Reason) bool { return slices.Contains(v.Reasons, r) }
	switch {
	case has(ReasonEnding):
		if _, source := s.Ending(now); source == sandbox.AgeUnknown {
			return "its end was requested; its provider has to complete it, and it is not known since when"
		}
		return "its end was requested; its provider has to complete it"
	case has(ReasonAgeUnknown):
		if _, source := s.Age(now); source == sandbox.AgeUnknown {
			return "not judged: its age is unknown"
		}
		return "not judged: its real age is unknown"
	case has(ReasonStateUnknown):
		return "not judged: its state is unknown"
	case has(ReasonNotLooked):
		return "not judged: it is old enough to be stuck, but was not queried"
	case has(ReasonSourceFailed):
		return "not judged: a source that may have seen activity does not answer" + v.evidenceText()
	}
	text := "not judged: " + v.finishedPrefix() + "no source tells whether it is active"
	if v.Confidence == sandbox.Hint || v.Confidence == sandbox.Probable {
		text += "; " + v.confidencePrefix() + cause
	}
	return text + v.evidenceText()
}

// finishedPrefix says that the work is over, where a record shows it.
func (v *Verdict) finishedPrefix() string {
	if slices.Contains(v.Reasons, ReasonFinished) {
		return "finished but alive; "
	}
	return ""
}

// confidencePrefix is the word for the confidence, written before a cause.
func (v *Verdict) confidencePrefix() string {
	switch {
	case v.Confidence == sandbox.Hint:
		return "perhaps "
	case v.Confidence == sandbox.Probable && (v.Stuck != sandbox.True || slices.Contains(v.Reasons, ReasonAgeOnly)):
		return "probably "
	}
	return ""
}

func (v *Verdict) causeEvidence() []sandbox.Evidence {
	for _, f := range v.Findings {
		if f.Cause == v.Cause {
			return f.Evidence
		}
	}
	return v.Evidence
}

func (v *Verdict) evidenceText() string {
	evidence := v.Evidence
	if v.Cause == sandbox.CauseLeak { // adds how soon memory is full
		evidence = slices.Concat(evidence, v.causeEvidence())
	}
	return formatEvidence(evidence)
}

// formatEvidence writes the evidence in brackets, each item once.
func formatEvidence(evidence []sandbox.Evidence) string {
	var parts []string
	for _, e := range evidence {
		if part := e.What + " " + e.Value; !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return joinIfAny(" (", strings.Join(parts, ", "), ")")
}

// joinIfAny surrounds text, unless it is empty.
func joinIfAny(before, text string, end ...string) string {
	if text == "" {
		return ""
	}
	return before + text + strings.Join(end, "")
}

// causeWords is a cause as the rest of a sentence, which has its name.
func causeWords(c sandbox.Cause) string {
	switch c {
	case sandbox.CauseNone:
		return ""
	case sandbox.CauseBusyLoop:
		return "it is in a busy loop"
	case sandbox.CauseHungIO:
		return "it waits on the network"
	case sandbox.CauseLeak:
		return "it has a memory leak"
	case sandbox.CauseNoAnswer:
		return "it gives no answer"
	case sandbox.CauseProvisioning:
		return "it has not started"
	case sandbox.CauseEnding:
		return "it has not ended"
	case sandbox.CauseSilent:
		return "it is silent"
	case sandbox.CauseGhost:
		return "it is a ghost: its provider lists it, but does not have it"
	case sandbox.CauseUnknown:
		return "the cause is unknown"
	case sandbox.CauseRestarts:
		return "its program restarts again and again"
	case sandbox.CauseUnhealthy:
		return "it is unhealthy: its own check fails"
	case sandbox.CauseMainEnded:
		return "its main program ended, and something beside it runs on"
	case sandbox.CauseOOM:
		return "the kernel killed it: out of memory"
	case sandbox.CauseOOMChild:
		return "the kernel killed one of its processes: out of memory"
	case sandbox.CauseRuntimeHeap:
		return "the language runtime ended: heap full"
	case sandbox.CauseMemoryWatchdog:
		return "the watchdog killed it: over memory limit"
	case sandbox.CauseProcessLimit:
		return "it reached its process limit"
	case sandbox.CauseFileLimit:
		return "it reached its file limit"
	case sandbox.CauseTimeout:
		return "it reached its time limit"
	case sandbox.CauseStopped:
		return "it was stopped"
	default:
		return c.Label()
	}
}
