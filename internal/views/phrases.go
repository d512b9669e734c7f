package views

import (
	"errors"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// EvidenceItem is one observation.
type EvidenceItem struct {
	What   string     `json:"what"`   // What was looked at.
	Value  string     `json:"value"`  // What was seen.
	Source string     `json:"source"` // Where it was seen.
	At     *time.Time `json:"at"`     // When it was seen.
}

// EvidenceList is the JSON form of what backs a claim.
func EvidenceList(list []sandbox.Evidence) []EvidenceItem {
	items := make([]EvidenceItem, len(list))
	for i, e := range list {
		items[i] = EvidenceItem{e.What, e.Value, e.Source, output.Time(e.At)}
	}
	return items
}

func evidenceText(e sandbox.Evidence) string {
	return ops.WithDetail(strings.TrimSpace(e.What+" "+e.Value), e.Source)
}

// joinEvidence are the figures of evidence without their sources.
func joinEvidence(evidence []sandbox.Evidence) string {
	var parts []string
	for _, e := range evidence {
		parts = append(parts, strings.TrimSpace(e.What+" "+e.Value))
	}
	return strings.Join(parts, ", ")
}

// ClaimWithEvidence joins a claim and what was seen of it.
func ClaimWithEvidence(claim string, evidence []sandbox.Evidence) string {
	var texts []string
	for _, e := range evidence {
		texts = append(texts, evidenceText(e))
	}
	return joinKnown(": ", claim, strings.Join(texts, ", "))
}

func joinKnown(separator string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), separator)
}

func addKnown(s *output.Sheet, name, value string) {
	if value != "" {
		s.Field(name, value)
	}
}

func addMoment(s *output.Sheet, name string, at time.Time) {
	if !at.IsZero() {
		s.Field(name, at.UTC())
	}
}

// ClockTime writes the time of a line as short as it stays clear: without the day
// within the last day, UTC.
func ClockTime(at, now time.Time) string {
	switch age := now.Sub(at); {
	case at.IsZero():
		return "-"
	case age >= 0 && age < 24*time.Hour:
		return at.UTC().Format(time.TimeOnly)
	}
	return at.UTC().Format(time.RFC3339)
}

// UnknownReason says in one line why a part of an observation has no answer.
func UnknownReason(err error) string {
	text := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Err != nil {
		text = f.Err.Error()
	}
	if fault.KindOf(err) == fault.KindUnsupported {
		return "cannot be known: " + text
	}
	return "could not be read: " + text
}

// StuckTone is the tone of the verdict whether a sandbox is stuck.
func StuckTone(v sandbox.Verdict) output.Tone {
	return map[sandbox.Verdict]output.Tone{sandbox.True: output.Bad, sandbox.Unknown: output.Warn, sandbox.False: output.Plain}[v]
}

// SeverityTone is the tone of a severity.
func SeverityTone(s triage.Severity) output.Tone {
	return map[triage.Severity]output.Tone{triage.Critical: output.Bad, triage.Warning: output.Warn, triage.Info: output.Plain}[s]
}

// ConfidenceTone is the tone of a confidence.
func ConfidenceTone(c sandbox.Confidence) output.Tone {
	return map[sandbox.Confidence]output.Tone{
		sandbox.Certain: output.Bad, sandbox.Probable: output.Bad, sandbox.Hint: output.Warn, sandbox.ConfidenceUnknown: output.Plain,
	}[c]
}
