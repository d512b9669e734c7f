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

// Background is what a terminal says of its own colour.
type Background int

// The backgrounds.
const (
	UnknownBackground Background = iota // nobody asked it, or it does not tell
	DarkBackground
	LightBackground
	FewLightBackground // light, with 16 colours
)

// colours are the colours of the tones; "" = it is faint. Where the background is not known they are those that the user has
// chosen for the terminal; the others are fixed ones, of which the background of every usual theme leaves
// a contrast of 4.5.
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

// Look is how a text is drawn.
type Look struct {
	Tone  Tone
	Shade Shade
	Bold  bool
}

// style is the look on a background.
func (l Look) style(b Background) lipgloss.Style {
	style := lipgloss.NewStyle().Bold(l.Bold)
	shade, colour := "", colours(b)[l.Tone]
	if l.Shade < FullShade {
		shade = shades(b)[l.Shade]
	}
	switch {
	case l.Shade == FullShade, l.Shade == CursorShade && shade == "":
		style = style.Reverse(true)
	case shade != "":
		style = style.Background(lipgloss.Color(shade))
	}
	switch {
	case l.Shade == CursorShade && shade == "": // a reversed line has one colour
	case colour != "":
		style = style.Foreground(lipgloss.Color(colour))
	case l.Tone == Muted:
		style = style.Faint(true)
	}
	return style
}

// sgr are the sequences before and behind a text, by its look. To make a style takes longer than to draw a row.
type sgr struct{ before, behind string }

var sgrs sync.Map //nolint:gochecknoglobals // a cache, [lookOn]sgr: a style makes the same sequences each time

type lookOn struct {
	Look
	Background
}

// paint gives text the colour of a tone, where the screen has colours.
func (s screen) paint(text string, tone Tone) string { return s.draw(text, Look{Tone: tone}) }

// draw gives text its look, where the screen has colours.
func (s screen) draw(text string, look Look) string {
	if !s.colour || look == (Look{}) || text == "" {
		return text
	}
	key := lookOn{look, s.background}
	known, ok := sgrs.Load(key)
	if !ok {
		var one sgr
		one.before, one.behind, _ = strings.Cut(look.style(s.background).Render("x"), "x")
		known, _ = sgrs.LoadOrStore(key, one)
	}
	one, _ := known.(sgr)
	return one.before + text + one.behind
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
