package views

import (
	"strings"
	"time"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

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

func addCount(s *output.Sheet, name string, n *int64) {
	if n != nil {
		s.Field(name, n)
	}
}

func addAmount(s *output.Sheet, name, figure, unit string) {
	if figure != "-" {
		s.Field(name, figure+" "+unit)
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

func evidenceText(e sandbox.Evidence) string {
	return ops.WithDetail(strings.TrimSpace(e.What+" "+e.Value), e.Source)
}

// StuckTone is the tone of the verdict whether a sandbox is stuck.
func StuckTone(v sandbox.Verdict) output.Tone {
	switch v {
	case sandbox.True:
		return output.Bad
	case sandbox.Unknown:
		return output.Warn
	case sandbox.False:
	}
	return output.Plain
}

// HealthTone is bad only where an answer is due: what has ended gives none.
func (i Inspection) HealthTone() output.Tone {
	switch {
	case i.Seen.Health.Got.Verdict == sandbox.True:
		return output.Good
	case i.State != sandbox.StateRunning:
		return output.Plain
	case i.Seen.Health.Got.Verdict == sandbox.False:
		return output.Bad
	}
	return output.Warn
}
