package commands

import (
	"strconv"
	"strings"

	"sbx/internal/sandbox"
)

// gapBefore is a gap before the rows that are held back for --tail.
type gapBefore struct {
	line  sandbox.LogLine
	added int // rows that came before it
}

// missing tells of output that is not there.
func (g *logPage) missing(line sandbox.LogLine) {
	g.gaps = append(g.gaps, *line.Gap)
	g.list.Truncated()
	g.list.Incomplete()
	g.list.WhenEmpty("none of its output is kept")
	g.printer.Note(missingOutput(line))
}

// missingOutput is a gap in words: why, and how much.
func missingOutput(line sandbox.LogLine) string {
	var parts []string
	if n := line.Gap.Lines; n != nil {
		parts = append(parts, strconv.FormatInt(*n, 10)+" lines")
	}
	if n := line.Gap.Bytes; n != nil {
		parts = append(parts, sizeText(*n))
	}
	if len(parts) == 0 {
		return line.Text
	}
	return line.Text + ": " + strings.Join(parts, ", ") + " missing"
}

// sums are the keys of a log's document that say how much is missing; null = that is
// not known.
func (g *logPage) sums() {
	lines, size := new(int64), new(int64)
	for _, gap := range g.gaps {
		lines, size = plus(lines, gap.Lines), plus(size, gap.Bytes)
	}
	g.list.Set("missing_lines", lines)
	g.list.Set("missing_bytes", size)
}

// plus adds figures of which each may be unknown.
func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// sizeText writes a size for people.
func sizeText(bytes int64) string {
	if bytes < 1<<20 {
		return strconv.FormatInt(bytes, 10) + " bytes"
	}
	return strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 1, 64) + " MiB"
}
