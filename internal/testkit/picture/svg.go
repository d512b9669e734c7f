// Package picture draws what a terminal shows as SVG, for the pictures of the documentation. The same text gives
// the same bytes.
//
// It knows what sbx prints and no more: lines, and the colours and weights of SGR. A program that moves the
// cursor cannot be drawn.
package picture

import (
	"fmt"
	"html"
	"math"
	"regexp"
	"strconv"
	"strings"

	"sbx/internal/output"
)

// Theme is the colour of the background and of plain text, in CSS.
type Theme struct{ Background, Foreground string }

// Dark is the theme of pictures on a dark page.
func Dark() Theme { return Theme{"#0d1117", "#d1d7e0"} }

// Light is the theme of pictures on a light page.
func Light() Theme { return Theme{"#ffffff", "#1f2328"} }

// Sizes of a cell and of the margin, in units of the picture.
const (
	cellWidth  = 8.4
	cellHeight = 18.0
	baseline   = 13.5 // of a line, below its top
	margin     = 14.0
)

// pen is how text is drawn.
type pen struct {
	colour  string // CSS; "" = that of the theme
	behind  string // the same, of the background
	bold    bool
	reverse bool
}

var sgr = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// SVG draws lines in a window of so many columns. Each piece of one look has its place and its width, so that any
// monospaced font keeps the columns.
func SVG(lines []string, columns int, t Theme) string {
	width, height := 2*margin+cellWidth*float64(columns), 2*margin+cellHeight*float64(len(lines))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" xml:space="preserve">`+"\n",
		formatLength(width), formatLength(height))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", t.Background)
	for i, line := range lines {
		drawLine(&b, line, margin+cellHeight*float64(i), t)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawLine draws one line with its upper edge at top.
func drawLine(b *strings.Builder, line string, top float64, t Theme) {
	var p pen
	column, from := 0, 0
	put := func(text string) {
		drawPiece(b, text, column, top, p, t)
		column += output.Width(text)
	}
	for _, at := range sgr.FindAllStringSubmatchIndex(line, -1) {
		put(line[from:at[0]])
		p = p.with(line[at[2]:at[3]])
		from = at[1]
	}
	put(line[from:])
}

// drawPiece draws text of one look, without the blanks around it: they have nothing to see unless it is reversed.
func drawPiece(b *strings.Builder, text string, column int, top float64, p pen, t Theme) {
	seen := text
	if !p.reverse && p.behind == "" {
		seen = strings.TrimRight(strings.TrimLeft(text, " "), " ")
		column += len(text) - len(strings.TrimLeft(text, " "))
	}
	if seen == "" {
		return
	}
	colour, x, width := p.colour, margin+cellWidth*float64(column), cellWidth*float64(output.Width(seen))
	if colour == "" {
		colour = t.Foreground
	}
	behind := p.behind
	if p.reverse {
		behind, colour = colour, t.Background
	}
	if behind != "" {
		fmt.Fprintf(b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`+"\n", formatLength(x), formatLength(top), formatLength(width), formatLength(cellHeight), behind)
	}
	if strings.TrimSpace(seen) == "" {
		return
	}
	weight := ""
	if p.bold {
		weight = ` font-weight="bold"`
	}
	fmt.Fprintf(b, `<text x="%s" y="%s" textLength="%s" lengthAdjust="spacingAndGlyphs" fill="%s"%s>%s</text>`+"\n",
		formatLength(x), formatLength(top+baseline), formatLength(width), colour, weight, html.EscapeString(seen))
}

// with is the pen after the parameters of one SGR sequence.
func (p pen) with(parameters string) pen {
	codes := strings.Split(parameters, ";")
	for i := 0; i < len(codes); i++ {
		switch code := codes[i]; {
		case code == "" || code == "0":
			p = pen{}
		case code == "1":
			p.bold = true
		case code == "7":
			p.reverse = true
		case code == "38" && i+2 < len(codes) && codes[i+1] == "5":
			n, _ := strconv.Atoi(codes[i+2]) // what is no number is black
			p.colour = paletteColour(n)
			i += 2
		case code == "48" && i+2 < len(codes) && codes[i+1] == "5":
			n, _ := strconv.Atoi(codes[i+2])
			p.behind = paletteColour(n)
			i += 2
		case code == "48" && i+4 < len(codes) && codes[i+1] == "2":
			p.behind = fmt.Sprintf("#%02x%02x%02x", part(codes[i+2]), part(codes[i+3]), part(codes[i+4]))
			i += 4
		case len(code) == 2 && code[0] == '3' && code[1] < '8':
			p.colour = paletteColour(int(code[1] - '0'))
		}
	}
	return p
}

// part is one of the three numbers of a colour; what is no number is 0.
func part(text string) uint8 {
	n, _ := strconv.ParseUint(text, 10, 8)
	return uint8(n)
}

// paletteColour is a colour of the palette of 256 as xterm has it: 16 named ones, a cube of 6x6x6, 24 greys.
func paletteColour(n int) string {
	named := []string{
		"#000000", "#cd3131", "#0dbc79", "#949800", "#2472c8", "#bc3fbc", "#11a8cd", "#a5a5a5",
		"#666666", "#f14c4c", "#23d18b", "#b5ba00", "#3b8eea", "#d670d6", "#29b8db", "#e5e5e5",
	}
	level := func(i int) int {
		if i == 0 {
			return 0
		}
		return 55 + 40*i
	}
	switch {
	case n < 0 || n > 255:
		return named[0]
	case n < 16:
		return named[n]
	case n < 232:
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	}
	grey := 8 + 10*(n-232)
	return fmt.Sprintf("#%02x%02x%02x", grey, grey, grey)
}

// formatLength writes a length with at most one digit behind the point.
func formatLength(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
