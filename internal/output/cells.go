package output

import (
	"strings"
)

// Cells draws texts for a screen that is made cell by cell, as the tables of this room are: escaped, cut or
// padded to a width, and painted.
type Cells struct {
	ASCII bool // the screen has no other characters
	Plain bool // and no colours
	Few   bool // and no more than 16 of them

	Background Background
}

// Cut is a text in at most width cells.
func (c Cells) Cut(text string, width int) string {
	if width <= 0 {
		return ""
	}
	s := screen{ascii: c.ASCII}
	return s.cut(s.escape(text), width)
}

// Fit is a text in exactly width cells.
func (c Cells) Fit(text string, width int) string {
	text = c.Cut(text, width)
	return text + strings.Repeat(" ", max(0, width-cellWidth(text)))
}

// Spark draws figures in a cell each, as high as they are in proportion to full; what is above that is full.
func (c Cells) Spark(figures []float64, full float64) string {
	steps := []rune("▁▂▃▄▅▆▇█")
	if c.ASCII {
		steps = []rune(".:-=#")
	}
	var b strings.Builder
	for _, f := range figures {
		b.WriteRune(steps[max(0, min(int(f/full*float64(len(steps))), len(steps)-1))])
	}
	return b.String()
}

// Width counts the cells of a text without colours.
func Width(text string) int { return cellWidth(text) }

// Paint gives a text the colour of a tone.
func (c Cells) Paint(text string, tone Tone) string { return c.Draw(text, Style{Tone: tone}) }

// Draw gives a text its style.
func (c Cells) Draw(text string, style Style) string {
	background := c.Background
	switch {
	case c.Few && background == LightBackground:
		background = FewLightBackground
	case c.Few:
		background = UnknownBackground
	}
	return screen{colour: !c.Plain, background: background}.draw(text, style)
}
