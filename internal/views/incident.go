package views

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/incident"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// IncidentColumns are those of `sbx incident ls` and of the verbs that change one.
func IncidentColumns() []output.Column[Record] {
	columns := recordColumns("id state severity title started_at duration_seconds started_by | alert runbook providers closed_at closed_as events snapshots host problem")
	for i := range columns {
		name := columns[i].Name
		switch name {
		case "id":
			columns[i].Whole = true
		case "duration_seconds":
			columns[i].Text = func(r Record) string {
				if r[name] == nil {
					return "-"
				}
				return secondsText(r[name])
			}
		}
	}
	return columns
}

// IncidentShowColumns are those of `sbx incident show`.
func IncidentShowColumns() []output.Column[Record] {
	return append(IncidentColumns(), recordColumns("timeline files")...)
}

// RedactionColumns are those of `sbx incident redact`.
func RedactionColumns() []output.Column[Record] {
	return append(IncidentColumns(), recordColumns("places changed_events changed_snapshots")...)
}

func incidentRecord(i *incident.Incident, now time.Time) Record {
	end := cmp.Or(i.ClosedAt, now)
	var took any
	if !i.StartedAt.IsZero() {
		took = output.Seconds(end.Sub(i.StartedAt))
	}
	return Record{
		"id": i.ID, "state": string(i.State), "title": TextOrNil(i.Start.Title), "severity": TextOrNil(i.Severity), "alert": TextOrNil(i.Alert),
		"runbook": TextOrNil(i.Start.Runbook), "providers": textList(i.Start.Providers), "started_at": output.Time(i.StartedAt), "started_by": TextOrNil(i.StartedBy.Who),
		"host": TextOrNil(i.StartedBy.Host), "closed_at": output.Time(i.ClosedAt), "closed_as": TextOrNil(string(i.As)), "duration_seconds": took,
		"events": len(i.Events), "snapshots": len(i.Snapshots()), "problem": TextOrNil(i.Problem),
	}
}

// noIncident is the record of no open incident, whose state is "none".
func noIncident() Record {
	r := incidentRecord(&incident.Incident{}, time.Time{})
	r["id"], r["state"] = nil, "none"
	return r
}

// ShowIncidents lists incidents.
func ShowIncidents(p *output.Printer, schema string, all []*incident.Incident, errs []error) error {
	list, err := output.NewList(p, output.ListSpec[Record]{Schema: schema, Columns: IncidentColumns(), Empty: "no incident was recorded here; `sbx incident start` begins one"})
	if err != nil {
		return err
	}
	for _, i := range all {
		_ = list.Add(incidentRecord(i, p.Now())) // Close gives the error of stdout
	}
	for _, err := range errs {
		list.Fail(err)
	}
	return list.Close()
}

// ShowIncident shows one incident in short; nil = none is open. Said is a line for people instead, as
// after a change; "" = the page.
func ShowIncident(p *output.Printer, schema string, i *incident.Incident, said string) error {
	row := noIncident()
	if i != nil {
		row = incidentRecord(i, p.Now())
	}
	spec := output.ItemSpec[Record]{Schema: schema, Columns: IncidentColumns(), Human: func(s *output.Sheet, _ Record) {
		switch {
		case said != "":
			s.Text(said)
		case i == nil:
			s.Text("no incident is open")
		default:
			incidentHead(s, i, p.Now())
			timelineTable(s, lastEvents(i, shownEvents))
		}
	}}
	return showRecord(p, spec, row)
}

// shownEvents is how many events `sbx incident status` shows.
const shownEvents = 8

func lastEvents(i *incident.Incident, n int) []incident.Event {
	return i.Events[max(0, len(i.Events)-n):]
}

// ShowWholeIncident shows an incident with all of its events.
func ShowWholeIncident(p *output.Printer, schema string, i *incident.Incident) error {
	row := incidentRecord(i, p.Now())
	timeline, files := []any{}, []any{}
	for _, e := range sortedEvents(i.Events) {
		timeline = append(timeline, eventFields(e))
	}
	for _, s := range i.Snapshots() {
		files = append(files, snapshotFields(s))
	}
	row["timeline"], row["files"] = timeline, files
	page := func(s *output.Sheet, _ Record) {
		incidentHead(s, i, p.Now())
		timelineTable(s, sortedEvents(i.Events))
	}
	return showRecord(p, output.ItemSpec[Record]{Schema: schema, Columns: IncidentShowColumns(), Human: page}, row)
}

// ShowRedaction shows what was removed from a record.
func ShowRedaction(p *output.Printer, schema string, i *incident.Incident, done incident.Redaction) error {
	row := incidentRecord(i, p.Now())
	row["places"], row["changed_events"], row["changed_snapshots"] = done.Places, done.Events, done.Files
	page := func(s *output.Sheet, _ Record) {
		if done.Places == 0 {
			s.Text("nothing to redact was found in " + i.ID)
			return
		}
		s.Text(fmt.Sprintf("%s: redacted %s; its chain was rewritten, and the record says so", i.ID, done))
	}
	return showRecord(p, output.ItemSpec[Record]{Schema: schema, Columns: RedactionColumns(), Human: page}, row)
}

func incidentHead(s *output.Sheet, i *incident.Incident, now time.Time) {
	s.Section(i.ID + ": " + cmp.Or(i.Start.Title, "no title"))
	state := string(i.State)
	if i.As != "" {
		state += " as " + string(i.As)
	}
	s.Field("state", state)
	if i.Problem != "" {
		s.FieldTone("problem", i.Problem, output.Bad)
	}
	s.Field("severity", cmp.Or(i.Severity, "not known"))
	if i.Alert != "" {
		s.Field("alert", i.Alert)
	}
	if i.Start.Runbook != "" {
		s.Field("runbook", i.Start.Runbook)
	}
	s.Field("started", output.Time(i.StartedAt))
	s.Field("by", i.StartedBy.Who+" on "+i.StartedBy.Host)
	if !i.StartedAt.IsZero() {
		s.Field("for", sandbox.FormatDuration(cmp.Or(i.ClosedAt, now).Sub(i.StartedAt).Round(time.Second)))
	}
	s.Field("events", len(i.Events))
}

func timelineTable(s *output.Sheet, events []incident.Event) {
	var rows [][]any
	for _, e := range events {
		rows = append(rows, []any{e.At.UTC().Format("01-02 15:04:05"), e.Actor.Who, string(e.Kind), EventText(e)})
	}
	if len(rows) > 0 {
		s.Section("timeline").Table([]string{"at (UTC)", "who", "what", "text"}, rows)
	}
}

// sortedEvents are the events by their time: a note may be about an earlier moment.
func sortedEvents(events []incident.Event) []incident.Event {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b incident.Event) int { return a.At.Compare(b.At) })
	return sorted
}

// EventText is one line about an event.
func EventText(e incident.Event) string {
	switch e.Kind {
	case incident.Started:
		if e.Start != nil {
			return joinKnown("; ", e.Start.Title, prefixed("alert ", e.Start.Alert), prefixed("runbook ", e.Start.Runbook))
		}
	case incident.Seen, incident.Acted, incident.Verified:
		return joinKnown("; ", commandText(e), figuresText(e), actsText(e), causeText(e), flagsText(e), e.Text, errorsText(e))
	case incident.Stepped:
		if e.Step != nil {
			return stepText(*e.Step)
		}
	case incident.Snapshotted:
		if e.Snapshot != nil {
			return fmt.Sprintf("%s (%d bytes, sha256 %s)", e.Snapshot.File, e.Snapshot.Bytes, e.Snapshot.SHA256[:min(12, len(e.Snapshot.SHA256))])
		}
	case incident.Escalated:
		if e.Message != nil {
			return joinKnown("; ", e.Text, prefixed("to ", strings.Join(e.Message.To, ", ")), prefixed("not sent: ", e.Message.Error))
		}
	case incident.Redacted:
		if e.Redaction != nil {
			return "the record was rewritten: " + e.Redaction.String()
		}
	case incident.Closed:
		return joinKnown(": ", "as "+string(e.As), e.Text)
	case incident.Noted, incident.Acknowledged:
	}
	return joinKnown(": ", prefixed("it was ", string(e.Milestone)), prefixed("answer to ", e.Question), e.Text)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func commandText(e incident.Event) string {
	line := cmp.Or(e.Line, e.Verb)
	if line == "" || e.ExitCode == nil {
		return line
	}
	return fmt.Sprintf("%s (exit %d)", line, *e.ExitCode)
}

func figuresText(e incident.Event) string {
	var parts []string
	for _, f := range e.Figures {
		if f.Value != nil {
			parts = append(parts, fmt.Sprintf("%s %s", strings.ReplaceAll(f.Name, "_", " "), formatNumber(*f.Value)))
		}
	}
	return strings.Join(parts, ", ")
}

func formatNumber(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.2f", v), ".00") }

// actsText counts the outcomes of acts.
func actsText(e incident.Event) string {
	if len(e.Acts) == 0 {
		return ""
	}
	counts := map[string]int{}
	var words []string
	for _, a := range e.Acts {
		word := a.Action + " " + cmp.Or(a.Outcome, "outcome unknown")
		if counts[word]++; counts[word] == 1 {
			words = append(words, word)
		}
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%s %d", word, counts[word])
	}
	text := strings.Join(words, ", ")
	if len(e.Acts) == 1 {
		return e.Acts[0].Ref + " " + strings.TrimSuffix(text, " 1")
	}
	if e.MoreActs > 0 {
		text += fmt.Sprintf(", and %d more", e.MoreActs)
	}
	return text
}

func causeText(e incident.Event) string {
	if len(e.Causes) == 0 {
		return ""
	}
	c := e.Causes[0]
	return fmt.Sprintf("cause: %s (%s)", c.Title, c.Confidence)
}

// flagsText counts flags, and targets that are missed.
func flagsText(e incident.Event) string {
	var parts []string
	if n := len(e.Flags); n > 0 {
		parts = append(parts, fmt.Sprintf("%d flags", n))
	}
	var missed []string
	for _, c := range e.Checks {
		if c.Verdict == sandbox.False {
			missed = append(missed, c.Title)
		}
	}
	if len(e.Checks) > 0 && len(e.Errors) == 0 { // the error of verify names those that are missed
		text := fmt.Sprintf("%d of %d targets missed", len(missed), len(e.Checks))
		parts = append(parts, joinKnown(": ", text, strings.Join(missed, ", ")))
	}
	return strings.Join(parts, ", ")
}

func errorsText(e incident.Event) string {
	if len(e.Errors) == 0 {
		return ""
	}
	text := e.Errors[0]
	if len(e.Errors) > 1 {
		text += fmt.Sprintf(" (and %d more errors)", len(e.Errors)-1)
	}
	return text
}

func stepText(s incident.Step) string {
	text := fmt.Sprintf("%s: %s: %s", s.ID, s.Title, strings.ReplaceAll(s.State, "_", " "))
	if s.Verdict != "" {
		text += ", " + s.Verdict
	}
	return joinKnown("; ", text, s.Text, prefixed("answer: ", s.Answer))
}
