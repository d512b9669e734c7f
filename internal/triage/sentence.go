package triage

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

func (v *Verdict) formatSentence(s sandbox.Sandbox, t Thresholds, now time.Time) string {
	cause := causeWords(v.Cause)
	switch {
	case s.State.Ended():
		return "it has ended" + joinIfAny(": ", cause)
	case slices.Contains(v.Reasons, ReasonKept):
		return s.KeptReason()
	case slices.Contains(v.Reasons, ReasonWaiting):
		return "not stuck: its agent is done, and waits"
	case slices.Contains(v.Reasons, ReasonProvisioning):
		return "stuck in provisioning for more than " + sandbox.FormatElapsed(t.ProvisioningAge) + v.evidenceText()
	case slices.Contains(v.Reasons, ReasonAgeOnly):
		return "stuck by age alone, as the profile says: over " + sandbox.FormatElapsed(t.StuckAge) + v.evidenceText()
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
	text := "not stuck: it is at work"
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
		return "it was asked to end, which its provider has to finish"
	case has(ReasonAgeUnknown):
		if _, source := s.Age(now); source == sandbox.AgeUnknown {
			return "not judged: its age is not known"
		}
		return "not judged: its real age is not known"
	case has(ReasonStateUnknown):
		return "not judged: its state is not known"
	case has(ReasonNotLooked):
		return "not judged: it is old enough to be stuck, and nobody has looked whether it works"
	case has(ReasonSourceFailed):
		return "not judged: a source that may have seen it at work does not answer" + v.evidenceText()
	}
	text := "not judged: " + v.finishedPrefix() + "nothing tells whether it is at work"
	if v.Confidence == sandbox.Hint || v.Confidence == sandbox.Probable {
		text += "; " + v.confidencePrefix() + cause
	}
	return text + v.evidenceText()
}

// finishedPrefix says that the work is over, where a record shows it.
func (v *Verdict) finishedPrefix() string {
	if slices.Contains(v.Reasons, ReasonFinished) {
		return "its work is done, and it runs on; "
	}
	return ""
}

// confidencePrefix is the word for the confidence, written before a cause.
func (v *Verdict) confidencePrefix() string {
	switch {
	case v.Confidence == sandbox.Hint:
		return "perhaps "
	case v.Confidence == sandbox.Probable && v.Stuck != sandbox.True:
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

// causeWords is the meaning of a cause, as the rest of a sentence.
func causeWords(c sandbox.Cause) string {
	switch c {
	case sandbox.CauseNone:
		return ""
	case sandbox.CauseBusyLoop:
		return "it is in a busy loop"
	case sandbox.CauseHungIO:
		return "it waits for something outside"
	case sandbox.CauseLeak:
		return "its memory leaks"
	case sandbox.CauseNoAnswer:
		return "nothing inside answers"
	case sandbox.CauseProvisioning:
		return "it does not start"
	case sandbox.CauseSilent:
		return "it is silent and does nothing"
	case sandbox.CauseUnknown:
		return "what is wrong is not known"
	default:
		return exitTitle(c)
	}
}
