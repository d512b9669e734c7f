package cond

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"sbx/internal/fault"
)

// Error is one mistake in a condition, at its place.
type Error struct {
	Text    string // of the condition
	Line    int    // from 1
	Column  int    // from 1, in characters
	Width   int    // of the place, in characters
	Message string // one line
}

// Error gives the place and the message: "column 5: no name "agee"".
func (e *Error) Error() string {
	place := fmt.Sprintf("column %d: ", e.Column)
	if strings.Contains(e.Text, "\n") {
		place = fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	}
	return place + e.Message
}

// excerptWidth is how much of a long line is shown.
const excerptWidth = 76

// Excerpt is the line of the mistake, and a line with carets under its place.
func (e *Error) Excerpt() []string {
	lines := strings.Split(e.Text, "\n")
	if e.Line < 1 || e.Line > len(lines) {
		return nil
	}
	line := []rune(strings.Map(printable, lines[e.Line-1]))
	at := min(e.Column-1, len(line))
	from := 0
	if len(line) > excerptWidth {
		from = max(0, min(at-excerptWidth/2, len(line)-excerptWidth))
		line = line[from:min(len(line), from+excerptWidth)]
	}
	at -= from
	carets := max(1, min(e.Width, len(line)-at))
	return []string{string(line), strings.Repeat(" ", at) + strings.Repeat("^", carets)}
}

// printable replaces what would move the caret.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return ' '
	}
	return r
}

// place is a part of a text, in characters.
type place struct{ from, to int }

func (p place) join(o place) place { return place{min(p.from, o.from), max(p.to, o.to)} }

// source is the text of a condition with what its errors need.
type source struct{ text string }

// mistake is an error at a place of the text.
func (s source) mistake(at place, hint, format string, args ...any) error {
	e := &Error{Text: s.text, Line: 1, Column: 1, Width: max(1, at.to-at.from), Message: fmt.Sprintf(format, args...)}
	n := 0
	for _, r := range s.text {
		if n == at.from {
			break
		}
		n++
		e.Column++
		if r == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	f := fault.Usage("%w", e)
	f.Excerpt = e.Excerpt()
	if hint != "" {
		f = f.WithHint("%s", hint)
	}
	return f
}

// slice is the text at a place.
func (s source) slice(at place) string {
	runes := []rune(s.text)
	return string(runes[min(at.from, len(runes)):min(at.to, len(runes))])
}

// suggest is the hint for an unknown word.
func suggest(word string, choices []string, otherwise string) string {
	near := fault.Nearest(word, choices)
	if near == "" {
		near = nearestStem(word, choices)
	}
	if near == "" {
		return otherwise
	}
	return "did you mean " + near + "?"
}

// nearestStem is the first choice whose name without its unit is near the word: age means
// age_seconds.
func nearestStem(word string, choices []string) string {
	stems := make([]string, len(choices))
	for i, c := range choices {
		stems[i], _, _ = strings.Cut(c, "_")
	}
	if i := slices.Index(stems, fault.Nearest(word, stems)); i >= 0 && stems[i] != "" {
		return choices[i]
	}
	return ""
}
