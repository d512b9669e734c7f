package views

import (
	"strings"

	"sbx/internal/ops"
	"sbx/internal/output"
)

// LogRow is one line with what is known about it.
type LogRow ops.LogLine

// LogColumns are the keys of CLI.md, logs.
func LogColumns() []output.Column[LogRow] {
	return []output.Column[LogRow]{
		{Name: "at", Value: func(r LogRow) any { return output.Time(r.At) }},
		{Name: "stream", Value: func(r LogRow) any { return r.Stream }},
		{Name: "line", Value: func(r LogRow) any { return r.Text }},
		{Name: "pattern", Value: func(r LogRow) any { return r.Pattern.ID }},
	}
}

// Explained is a line with the meaning of the pattern that it shows.
func (r LogRow) Explained() string { return "[" + r.Pattern.ID + ": " + r.Pattern.Say + "] " + r.Text }

// Origin is the time, to the millisecond, and the stream of a line.
func (r LogRow) Origin() string {
	at := strings.Repeat(" ", len(logTime)-1) + "-"
	if !r.At.IsZero() {
		at = r.At.UTC().Format(logTime)
	}
	return at + "  " + r.Stream + strings.Repeat(" ", max(0, len("stdout")-len(r.Stream))) + "  "
}

// logTime has a fixed width, so that lines align.
const logTime = "2006-01-02T15:04:05.000Z"
