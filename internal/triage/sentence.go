package triage

import (
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// sentence says in one line what the verdict is and by what.
func (v *Verdict) sentence(s sandbox.Sandbox, t Thresholds, now time.Time) string {
	cause := causeWords(v.Cause)
	switch {
	case s.State.Ended():
		return "it has ended" + joinIfAny(": ", cause)
	case slices.Contains(v.Words, ReasonKept):
		return s.KeptReason()
	case slices.Contains(v.Words, ReasonWaiting):
		return "not stuck: its agent is done, and waits"
	case slices.Contains(v.Words, ReasonProvisioning):
		return "stuck in provisioning for more than " + sandbox.FormatElapsed(t.ProvisioningAge) + v.seen()
	case slices.Contains(v.Words, ReasonAgeOnly):
		return "stuck by age alone, as the profile says: over " + sandbox.FormatElapsed(t.StuckAge) + v.seen()
	case v.Stuck == sandbox.True:
		return "stuck: " + v.done() + v.grade() + cause + v.seen()
	case v.Stuck == sandbox.False && s.State == sandbox.StateRunning:
		return v.healthySentence(t, cause)
	case v.Stuck == sandbox.False:
		return "it is " + string(s.State)
	}
	return v.unjudgedSentence(s, now, cause)
}

// healthySentence is the sentence of what runs and is not stuck.
func (v *Verdict) healthySentence(t Thresholds, cause string) string {
	text := "not stuck: it is at work"
	if slices.Contains(v.Words, ReasonYoung) {
		text = "not stuck: not older than " + sandbox.FormatElapsed(t.StuckAge)
	}
	if cause != "" {
		return text + "; but " + v.grade() + cause + evidenceOf(v.evidenceFor())
	}
	return text + v.seen()
}

// unjudgedSentence is the sentence of what cannot be judged.
func (v *Verdict) unjudgedSentence(s sandbox.Sandbox, now time.Time, cause string) string {
	has := func(r Reason) bool { return slices.Contains(v.Words, r) }
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
		return "not judged: a source that may have seen it at work does not answer" + v.seen()
	}
	text := "not judged: " + v.done() + "nothing tells whether it is at work"
	if v.Confidence == sandbox.Hint || v.Confidence == sandbox.Probable {
		text += "; " + v.grade() + cause
	}
	return text + v.seen()
}

// done says that its work is over, where a record shows it.
func (v *Verdict) done() string {
	if slices.Contains(v.Words, ReasonFinished) {
		return "its work is done, and it runs on; "
	}
	return ""
}

// grade is the confidence before a cause.
func (v *Verdict) grade() string {
	switch {
	case v.Confidence == sandbox.Hint:
		return "perhaps "
	case v.Confidence == sandbox.Probable && v.Stuck != sandbox.True:
		return "probably "
	}
	return ""
}

// evidenceFor is the evidence of the cause.
func (v *Verdict) evidenceFor() []sandbox.Evidence {
	for _, f := range v.Findings {
		if f.Cause == v.Cause {
			return f.Evidence
		}
	}
	return v.Evidence
}

func (v *Verdict) seen() string {
	evidence := v.Evidence
	if v.Cause == sandbox.CauseLeak { // how soon it is full says most
		evidence = slices.Concat(evidence, v.evidenceFor())
	}
	return evidenceOf(evidence)
}

// evidenceOf writes what was seen in brackets, each thing once.
func evidenceOf(evidence []sandbox.Evidence) string {
	var parts []string
	for _, e := range evidence {
		if part := e.What + " " + e.Value; !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return joinIfAny(" (", strings.Join(parts, ", "), ")")
}

// joinIfAny joins a text that may be empty; then nothing is left of it.
func joinIfAny(before, text string, end ...string) string {
	if text == "" {
		return ""
	}
	return before + text + strings.Join(end, "")
}

// causeWords says what a cause means, as the rest of a sentence.
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
