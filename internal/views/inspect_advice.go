package views

import (
	"fmt"
	"slices"
	"strings"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// pageSuspicions says what is wrong and why: the runbook's flags that hold,
// those that could not be answered, and the causes by rank.
func (i Inspection) pageSuspicions(s *output.Sheet) {
	s.Section("Suspicious")
	var unknown []string
	calm := true
	for _, f := range i.Flags {
		switch f.Verdict {
		case sandbox.True:
			s.FieldTone(f.ID+" "+string(f.Severity), ClaimWithEvidence(f.Say, f.Evidence), SeverityTone(f.Severity))
			calm = false
		case sandbox.Unknown:
			unknown = append(unknown, f.ID+" "+f.Say)
		case sandbox.False:
		}
	}
	for _, c := range i.Verdict.Findings {
		s.FieldTone(string(c.Confidence), ClaimWithEvidence(string(c.Cause)+", "+c.Title, c.Evidence), ConfidenceTone(c.Confidence))
		calm = false
	}
	if v := i.Verdict; v.Confidence != sandbox.ConfidenceUnknown && !slices.ContainsFunc(v.Findings, func(f triage.Finding) bool { return f.Cause == v.Cause }) {
		s.FieldTone(string(v.Confidence), ClaimWithEvidence(string(v.Cause), v.Evidence), ConfidenceTone(v.Confidence))
		calm = false
	}
	if calm {
		s.Text("nothing that was seen is suspicious")
	}
	if len(unknown) > 0 {
		s.Text("not known: " + strings.Join(unknown, "; "))
	}
}

// ClaimWithEvidence joins a claim and what was seen of it.
func ClaimWithEvidence(claim string, evidence []sandbox.Evidence) string {
	texts := make([]string, 0, len(evidence))
	for _, e := range evidence {
		texts = append(texts, evidenceText(e))
	}
	if len(texts) == 0 {
		return claim
	}
	return claim + ": " + strings.Join(texts, ", ")
}

// SeverityTone is the tone of a severity.
func SeverityTone(s triage.Severity) output.Tone {
	switch s {
	case triage.Critical:
		return output.Bad
	case triage.Warning:
		return output.Warn
	case triage.Info:
	}
	return output.Plain
}

// ConfidenceTone is the tone of a confidence.
func ConfidenceTone(c sandbox.Confidence) output.Tone {
	switch c {
	case sandbox.Certain, sandbox.Probable:
		return output.Bad
	case sandbox.Hint:
		return output.Warn
	case sandbox.ConfidenceUnknown:
	}
	return output.Plain
}

// step is a command that helps on, and what for.
type step struct{ Why, Command string }

func (i Inspection) pageNext(s *output.Sheet) {
	s.Section("Next")
	for _, n := range i.Next() {
		s.Field(n.Why, i.Program+" "+n.Command)
	}
}

// Next is what to type, the best first.
func (i Inspection) Next() []step {
	ref := ShellWord(i.Ref().String())
	logs := step{"read its output", "logs " + ref + " --tail 100"}
	end := step{"end it", "terminate " + ref}
	switch i.State {
	case sandbox.StateRunning:
		return i.nextOfRunning(ref, logs, end)
	case sandbox.StateProvisioning:
		if i.Verdict.Stuck == sandbox.True {
			return []step{end, {"check the provider", "doctor --provider " + ShellWord(i.Provider)}}
		}
		return []step{{"wait until it runs", "wait " + ref + " --for running"}}
	case sandbox.StateTerminating:
		if i.Verdict.Stuck == sandbox.True {
			return []step{{"ask again for its end", "terminate " + ref}, {"check the provider", "doctor --provider " + ShellWord(i.Provider)}}
		}
		return []step{{"wait for its end", "wait " + ref + " --for ended"}}
	case sandbox.StateTerminated, sandbox.StateFailed:
		return append([]step{logs}, i.MoreMemory()...)
	case sandbox.StatePaused, sandbox.StateStopped:
		return []step{logs, {"destroy what is kept of it", "terminate " + ref + " --delete"}}
	case sandbox.StateUnknown:
	}
	return []step{{"check the provider", "doctor --provider " + ShellWord(i.Provider)}, logs}
}

// nextOfRunning advises by behaviour: a missing owner is no reason to watch or end a sandbox.
func (i Inspection) nextOfRunning(ref string, logs, end step) []step {
	watch := step{"see how it develops", "top " + ref + " --samples 10"}
	misbehaves := slices.ContainsFunc(i.Verdict.Findings, func(f triage.Finding) bool { return f.Cause != sandbox.CauseOrphan })
	switch {
	case i.Verdict.Stuck == sandbox.True:
		return []step{end, logs}
	case misbehaves && i.Verdict.Findings[0].Confidence != sandbox.Hint:
		return []step{watch, logs, end}
	case i.Verdict.Stuck == sandbox.Unknown || misbehaves:
		return []step{watch, logs}
	}
	return []step{{"follow its output", "logs " + ref + " -f"}}
}

// MoreMemory is the way on after a death by memory: twice the limit.
func (i Inspection) MoreMemory() []step {
	if i.Exit == nil || i.Limits.MemoryBytes == nil {
		return nil
	}
	switch i.Exit.Cause {
	case sandbox.CauseOOM, sandbox.CauseOOMChild, sandbox.CauseMemoryWatchdog:
		return []step{{"start it with more memory", fmt.Sprintf("create --memory %dM -- COMMAND", 2**i.Limits.MemoryBytes/sandbox.MiB)}}
	default:
		return nil
	}
}

// ShellWord quotes what a shell would not take as it is: ids are the
// provider's, and the line is meant to be pasted.
func ShellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/_.:@%+-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
