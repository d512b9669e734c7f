package output

import (
	"charm.land/lipgloss/v2"

	"sbx/internal/sandbox"
)

// Tone is what a colour means. Colour only repeats what the word says.
type Tone int

// The tones.
const (
	Plain Tone = iota
	Good
	Warn
	Bad
	Muted
)

// paint gives text the colour of a tone, where the screen has colours.
func (s screen) paint(text string, tone Tone) string {
	if s.colour {
		return paintText(text, tone)
	}
	return text
}

func paintText(text string, tone Tone) string {
	style := lipgloss.NewStyle()
	switch tone {
	case Good:
		style = style.Foreground(lipgloss.Green)
	case Warn:
		style = style.Foreground(lipgloss.Yellow)
	case Bad:
		style = style.Foreground(lipgloss.Red)
	case Muted:
		style = style.Faint(true)
	case Plain:
		return text
	}
	return style.Render(text)
}

func boldText(text string) string { return lipgloss.NewStyle().Bold(true).Render(text) }

// toneOf gives the tone of the closed lists of words and of severities. A verdict has none:
// whether "true" is good depends on the question.
func toneOf(v any, key string) Tone {
	switch v := v.(type) {
	case sandbox.State:
		return stateTone(v)
	case sandbox.Outcome:
		return outcomeTone(v)
	case string:
		if key == "severity" {
			return severityTone(v)
		}
	}
	return Plain
}

func stateTone(s sandbox.State) Tone {
	switch s {
	case sandbox.StateRunning:
		return Good
	case sandbox.StateProvisioning, sandbox.StateTerminating, sandbox.StateUnknown:
		return Warn
	case sandbox.StateFailed:
		return Bad
	case sandbox.StatePaused, sandbox.StateStopped, sandbox.StateTerminated:
		return Muted
	}
	return Plain
}

func outcomeTone(o sandbox.Outcome) Tone {
	switch o {
	case sandbox.OutcomeVerified, sandbox.OutcomeAlreadyGone:
		return Good
	case sandbox.OutcomeAccepted, sandbox.OutcomeChanged, sandbox.OutcomeNotAttempted:
		return Warn
	case sandbox.OutcomeStuck, sandbox.OutcomeFailed:
		return Bad
	case sandbox.OutcomeSkipped:
		return Muted
	}
	return Plain
}

func severityTone(word string) Tone {
	switch word {
	case "critical", "error", "high":
		return Bad
	case "warning", "warn", "medium":
		return Warn
	case "ok", "normal":
		return Good
	}
	return Plain
}
