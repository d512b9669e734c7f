package output

import (
	"strings"
	"sync"

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
	Accent // what can be typed or chosen
)

// Background is the colour behind all text, as the terminal reports it.
type Background int

// The backgrounds.
const (
	UnknownBackground Background = iota // it was not asked, or does not answer
	DarkBackground
	LightBackground
	FewLightBackground // light, and the terminal has 16 colours
)

// colours are the colours of the tones; "" = it is faint. On a background that is not known they are the first 16, which
// the user has chosen for the terminal. On a known one they are fixed, with a contrast of at least 4.5 in every usual
// theme.
func colours(b Background) [Accent + 1]string {
	switch b {
	case DarkBackground:
		return [Accent + 1]string{Good: "77", Warn: "214", Bad: "210", Muted: "248", Accent: "75"}
	case LightBackground:
		return [Accent + 1]string{Good: "22", Warn: "94", Bad: "124", Muted: "240", Accent: "25"}
	case FewLightBackground: // its green, yellow and cyan cannot be read on white
		return [Accent + 1]string{Good: "4", Warn: "5", Bad: "1", Muted: "0", Accent: "4"}
	case UnknownBackground:
	}
	return [Accent + 1]string{Good: "2", Warn: "3", Bad: "1", Accent: "6"}
}

// Shade is what is behind a text. Like a tone it only repeats what words and marks say.
type Shade int

// The shades.
const (
	NoShade     Shade = iota
	BarShade          // of a line that belongs to the screen and to no row
	CellShade         // of a figure
	AlarmShade        // of a figure that is bad
	CursorShade       // of the row under the cursor
	FullShade         // the tone is behind the text
)

// shades are the colours of the shades; "" = it has none there.
func shades(b Background) [FullShade]string {
	switch b {
	case DarkBackground:
		return [FullShade]string{BarShade: "#1f252d", CellShade: "#232a33", AlarmShade: "#471d20", CursorShade: "#1c3a5e"}
	case LightBackground:
		return [FullShade]string{BarShade: "#e4e8ec", CellShade: "#eef1f4", AlarmShade: "#ffdfdb", CursorShade: "#cfe3ff"}
	case UnknownBackground, FewLightBackground:
	}
	return [FullShade]string{}
}

// Style is how a text is drawn.
type Style struct {
	Tone  Tone
	Shade Shade
	Bold  bool
}

// draw gives text its style, where the screen has colours.
func (s screen) draw(text string, style Style) string {
	if !s.colour || style == (Style{}) || text == "" {
		return text
	}
	around := style.sequences(s.background)
	return around.before + text + around.after
}

// paint gives text the colour of a tone, where the screen has colours.
func (s screen) paint(text string, tone Tone) string { return s.draw(text, Style{Tone: tone}) }

// sequences are the escape sequences around a text.
type sequences struct{ before, after string }

// styleOn is a style on a background: together they decide the sequences.
type styleOn struct {
	Style
	Background
}

var knownSequences sync.Map //nolint:gochecknoglobals // a cache, [styleOn]sequences: to make them takes longer than to draw a row

func (style Style) sequences(b Background) sequences {
	key := styleOn{style, b}
	known, ok := knownSequences.Load(key)
	if !ok {
		var made sequences
		made.before, made.after, _ = strings.Cut(style.onTerminal(b).Render("x"), "x")
		known, _ = knownSequences.LoadOrStore(key, made)
	}
	around, _ := known.(sequences)
	return around
}

// onTerminal translates a style for a terminal with a background.
func (style Style) onTerminal(b Background) lipgloss.Style {
	drawn := lipgloss.NewStyle().Bold(style.Bold)
	colour, shade := colours(b)[style.Tone], ""
	if style.Shade < FullShade {
		shade = shades(b)[style.Shade]
	}
	cursorWithoutShade := style.Shade == CursorShade && shade == ""
	if cursorWithoutShade || style.Shade == FullShade {
		drawn = drawn.Reverse(true)
	} else if shade != "" {
		drawn = drawn.Background(lipgloss.Color(shade))
	}
	switch {
	case cursorWithoutShade: // a reversed line has one colour
	case colour != "":
		drawn = drawn.Foreground(lipgloss.Color(colour))
	case style.Tone == Muted:
		drawn = drawn.Faint(true)
	}
	return drawn
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
