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

// Background is what a terminal says of its own colour.
type Background int

// The backgrounds.
const (
	UnknownBackground Background = iota // nobody asked it, or it does not tell
	DarkBackground
	LightBackground
)

// colours are those of the tones; "" = it is faint. Where the background is not known they are those that the user has
// chosen for the terminal; the others are fixed ones, of which the background of every usual theme leaves
// a contrast of 4.5.
func colours(b Background) [Muted + 1]string {
	switch b {
	case DarkBackground:
		return [Muted + 1]string{Good: "77", Warn: "214", Bad: "210", Muted: "248"}
	case LightBackground:
		return [Muted + 1]string{Good: "22", Warn: "94", Bad: "124", Muted: "240"}
	case UnknownBackground:
	}
	return [Muted + 1]string{Good: "2", Warn: "3", Bad: "1"}
}

// paint gives text the colour of a tone, where the screen has colours.
func (s screen) paint(text string, tone Tone) string {
	if !s.colour || tone == Plain {
		return text
	}
	if colour := colours(s.background)[tone]; colour != "" {
		return lipgloss.NewStyle().Foreground(lipgloss.Color(colour)).Render(text)
	}
	return lipgloss.NewStyle().Faint(true).Render(text)
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
