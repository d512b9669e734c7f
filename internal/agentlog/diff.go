package agentlog

import (
	"fmt"
	"iter"
	"strings"
)

// DiffLines gives the lines of a diff, each without its end. Of a diff with more than most lines it
// gives the first ones, and left is how many it leaves out; most 0 = all are given.
func DiffLines(diff string, most int) (shown iter.Seq[string], left int) {
	total := strings.Count(diff, "\n")
	if diff != "" && !strings.HasSuffix(diff, "\n") {
		total++
	}
	if most <= 0 || total <= most+1 { // a notice about one line would take as much room as the line
		most = total
	}
	return func(yield func(string) bool) {
		n := 0
		for line := range strings.Lines(diff) {
			if n == most || !yield(strings.TrimRight(line, "\r\n")) {
				return
			}
			n++
		}
	}, total - most
}

// DiffHead is the line above a diff: "a.go edited +5 -2, turn 3 (a preview: its end may be missing)".
func DiffHead(e *Event) string {
	text := e.What
	if e.Turn != nil {
		text += fmt.Sprintf(", turn %d", *e.Turn)
	}
	switch {
	case e.DiffBytes == 0:
		text += " (no diff was reported)"
	case e.DiffLeftOut:
		text += " (left out: those before it have 64 MiB)"
	case e.DiffPreview:
		text += " (a preview: its end may be missing)"
	}
	return text
}
