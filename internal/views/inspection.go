package views

import (
	"errors"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/history"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Inspection is one sandbox with all that is known and thought of it.
type Inspection struct {
	SandboxRow

	Seen    fleet.Observation
	Used    *UsageRow // nil where usage is not known
	Flags   []triage.Flag
	Causes  []triage.Finding
	Program string         // what sbx is called, for the next command
	Command string         // of the sandbox, quoted for a shell; "" = not known
	Ended   *ops.EndRecord // what the journals record of its end; nil = nothing
	Last    *history.Seen  // what an earlier look saw of one that is gone; nil = nothing
}

// InspectionOf is what an inspection found, as it is shown. Program is what sbx is called.
func InspectionOf(r *look.InspectResult, program string) Inspection {
	return Inspection{
		SandboxRow: SandboxRow{Sandbox: r.Seen.Sandbox, Verdict: r.Verdict, Now: r.At},
		Seen:       r.Seen, Used: (*UsageRow)(r.Used), Flags: r.Flags, Causes: r.Causes, Program: program, Ended: r.End, Last: r.Last,
	}
}

// ShowInspection shows one sandbox in full; of one that is gone what is on record, as an
// error.
func ShowInspection(p *output.Printer, schema string, r *look.InspectResult, program string) error {
	i := InspectionOf(r, program)
	i.Command = p.Redact(ShellLine(r.Seen.Sandbox.Command))
	spec := output.ItemSpec[Inspection]{Schema: schema, Columns: InspectColumns()}
	if r.Missing != nil {
		spec.Human = func(s *output.Sheet, i Inspection) { i.recordPage(s) }
		return output.ShowItemAs(p, spec, i, r.Missing, r.Missing)
	}
	spec.Human = func(s *output.Sheet, i Inspection) {
		i.addPage(s)
		if p.Verbose > 0 {
			i.addDetails(s)
		}
	}
	return output.ShowItem(p, spec, i, r.Errors...)
}

// recordPage shows people what is on record of a sandbox that is gone.
func (i Inspection) recordPage(s *output.Sheet) {
	absence := "it no longer exists"
	if i.Ended != nil {
		absence = i.Ended.Absence()
	}
	s.Section(i.Ref().String()).Field("state", ops.WithDetail(string(i.State), "on record; "+absence))
	if i.Exit != nil || i.Last != nil && i.Last.Live {
		s.Field("verdict", i.verdictText())
	}
	if i.Ended != nil {
		s.Field("ended by", i.Ended.Sentence(i.Now))
	}
	if i.Last != nil {
		s.Field("last seen", i.lastSeenText())
	}
	addKnown(s, "was", i.RawState)
	addKnown(s, "name", i.Name)
	addMoment(s, "created", i.CreatedAt)
	addKnown(s, "template", i.Template)
	addKnown(s, "agent type", i.AgentType)
	addKnown(s, "task", i.TaskID)
	if len(i.Labels) > 0 {
		s.Field("labels", i.Labels)
	}
	if len(i.Seen.Logs.Got) > 0 {
		i.pageOutput(s, pageLines)
	}
}

// lastSeenText says when an earlier look saw the sandbox, and what it made of it.
func (i Inspection) lastSeenText() string {
	return string(i.Last.Sandbox.State) + " " + sandbox.FormatElapsed(max(0, i.Now.Sub(i.Last.At))) + " ago, by an earlier look of sbx"
}

// EvidenceList is the JSON form of what backs a claim.
func EvidenceList(list []sandbox.Evidence) []EvidenceItem {
	items := make([]EvidenceItem, len(list))
	for i, e := range list {
		items[i] = EvidenceItem{e.What, e.Value, e.Source, output.Time(e.At)}
	}
	return items
}

func addKnown(s *output.Sheet, name, value string) {
	if value != "" {
		s.Field(name, value)
	}
}

func addMoment(s *output.Sheet, name string, at time.Time) {
	if !at.IsZero() {
		s.Field(name, at.UTC())
	}
}

func addCount(s *output.Sheet, name string, n *int64) {
	if n != nil {
		s.Field(name, n)
	}
}

func addAmount(s *output.Sheet, name, figure, unit string) {
	if figure != "-" {
		s.Field(name, figure+" "+unit)
	}
}

// ClockTime writes the time of a line as short as it stays clear: without the day
// within the last day, UTC.
func ClockTime(at, now time.Time) string {
	switch age := now.Sub(at); {
	case at.IsZero():
		return "-"
	case age >= 0 && age < 24*time.Hour:
		return at.UTC().Format(time.TimeOnly)
	}
	return at.UTC().Format(time.RFC3339)
}

func evidenceText(e sandbox.Evidence) string {
	return ops.WithDetail(strings.TrimSpace(e.What+" "+e.Value), e.Source)
}

// StuckTone is the tone of the verdict whether a sandbox is stuck.
func StuckTone(v sandbox.Verdict) output.Tone {
	switch v {
	case sandbox.True:
		return output.Bad
	case sandbox.Unknown:
		return output.Warn
	case sandbox.False:
	}
	return output.Plain
}

// HealthTone is bad only where an answer is due: what has ended gives none.
func (i Inspection) HealthTone() output.Tone {
	switch {
	case i.Seen.Health.Got.Verdict == sandbox.True:
		return output.Good
	case i.State != sandbox.StateRunning:
		return output.Plain
	case i.Seen.Health.Got.Verdict == sandbox.False:
		return output.Bad
	}
	return output.Warn
}

// UnknownReason says in one line why a part of an observation has no answer.
func UnknownReason(err error) string {
	text := err.Error()
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Err != nil {
		text = f.Err.Error()
	}
	if fault.KindOf(err) == fault.KindUnsupported {
		return "cannot be known: " + text
	}
	return "could not be read: " + text
}
