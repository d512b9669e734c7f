package views

import (
	"fmt"
	"strings"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// teamLabel is the label that names the team of a sandbox.
const teamLabel = "team"

// TaskAndName is what people call a sandbox: its task and its name, as far as it has them.
func TaskAndName(s sandbox.Sandbox) string {
	return strings.TrimSpace(s.TaskID + " " + s.Name)
}

// SandboxScreen are the columns of ls on a terminal: what people call a sandbox comes first,
// and why it needs attention last. Where all rows are stuck, the reason is the cause alone.
func SandboxScreen(allStuck bool) []output.Column[SandboxRow] {
	type row = SandboxRow
	why := row.Why
	if allStuck {
		why = row.causeText
	}
	columns := []output.Column[row]{
		{Name: "name", Head: "NAME", Value: func(r row) any { return TaskAndName(r.Sandbox) }},
		{Name: "ref", Whole: true},
		{Name: "state"},
		{Name: "age_seconds"},
		{Name: "idle_seconds"},
		{Name: "exit_code", Spare: true},
		{Name: "why", Keep: output.ReasonCells, Value: func(r row) any { return why(r) }, Tone: row.WhyTone},
		{Name: "team", Level: output.Wide, Value: func(r row) any { return r.Labels[teamLabel] }},
	}
	for _, name := range []string{"agent_type", "owner", "expires_at", "memory_mb", "cpu", "template", "activity", "labels"} {
		columns = append(columns, output.Column[row]{Name: name})
	}
	return output.Complete(columns, SandboxColumns())
}

// Why says in a few words what needs attention; "" = nothing. A sandbox that was not looked at
// has no reason; a listing counts those.
func (r SandboxRow) Why() string {
	v := r.Verdict
	words := v.Cause.Label()
	switch {
	case v.Stuck == sandbox.True:
		return "stuck: " + words
	case r.State.Ended():
		return knownCause(v.Cause).Label()
	case v.Unjudged() && v.Looked && v.Cause != sandbox.CauseUnknown && v.Cause != sandbox.CauseNone:
		return "unjudged: " + words + "?"
	case v.Unjudged() && v.Looked:
		return "unjudged"
	case r.State == sandbox.StateTerminating:
		return "terminating"
	case v.NeedsLook():
		return ""
	case v.Confidence == sandbox.Hint:
		return joinWords("perhaps", words)
	}
	return words
}

func (r SandboxRow) causeText() string { return r.Verdict.Cause.Label() }

// knownCause is the cause, CauseNone for the word that says that none is known.
func knownCause(c sandbox.Cause) sandbox.Cause {
	if c == sandbox.CauseUnknown {
		return sandbox.CauseNone
	}
	return c
}

func joinWords(first, rest string) string {
	if rest == "" {
		return ""
	}
	return first + " " + rest
}

// WhyTone is the tone of Why.
func (r SandboxRow) WhyTone() output.Tone {
	switch {
	case r.Verdict.Stuck == sandbox.True:
		return output.Bad
	case r.State.Ended():
		return output.Muted
	}
	return output.Warn
}

// RowOrder sorts a listing for people: running first, ended last, the newest first. An unknown age comes first, where it
// is seen.
func RowOrder(r SandboxRow) string {
	rank, age := 1, time.Duration(0)
	switch {
	case r.State == sandbox.StateRunning:
		rank = 0
	case r.State.Ended():
		rank = 2
	}
	if d, source := r.Age(r.Now); source != sandbox.AgeUnknown {
		age = max(0, d.Round(time.Millisecond)) + 1
	}
	return fmt.Sprintf("%d %020d %s", rank, age, r.Ref())
}
