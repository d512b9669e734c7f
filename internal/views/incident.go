package views

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// IncidentRow is a line of `incident ls`: an incident, and when it is looked at.
type IncidentRow struct {
	*incident.Incident

	now time.Time
}

// IncidentColumns are those of an IncidentItem.
func IncidentColumns() []output.Column[IncidentRow] {
	return output.Columns(func(r IncidentRow) IncidentItem { return incidentItem(r.Incident, r.now) },
		output.Column[IncidentRow]{Name: "severity", Tone: func(r IncidentRow) output.Tone { return wordTone(r.Start.Severity) }},
		output.Column[IncidentRow]{Name: "duration_seconds", Text: func(r IncidentRow) string {
			if r.StartedAt.IsZero() {
				return "-"
			}
			return sandbox.FormatDuration(cmp.Or(r.ClosedAt, r.now).Sub(r.StartedAt))
		}})
}

// IncidentStateColumns are those of an IncidentItem that is made already.
func IncidentStateColumns() []output.Column[IncidentItem] {
	return output.Columns(func(i IncidentItem) IncidentItem { return i })
}

// IncidentShowColumns are those of an IncidentShownItem.
func IncidentShowColumns() []output.Column[*incidents.IncidentReport] {
	return output.Columns(shownItem)
}

// ShowIncidents lists incidents.
func ShowIncidents(p *output.Printer, schema string, all []*incident.Incident, errs []error) error {
	list, err := output.NewList(p, output.ListSpec[IncidentRow]{Schema: schema, Columns: IncidentColumns(), Empty: "no incident was recorded here; `sbx incident start` begins one"})
	if err != nil {
		return err
	}
	for _, i := range all {
		_ = list.Add(IncidentRow{i, p.Now()}) // Close gives the error of stdout
	}
	for _, err := range errs {
		list.Fail(err)
	}
	return list.Close()
}

// ShowIncident says what was done to an incident.
func ShowIncident(p *output.Printer, schema string, i *incident.Incident, said string) error {
	page := func(s *output.Sheet, _ IncidentRow) { s.Text(said) }
	return output.ShowItem(p, output.ItemSpec[IncidentRow]{Schema: schema, Columns: IncidentColumns(), Human: page}, IncidentRow{i, p.Now()})
}

// shownEvents is how many events `sbx incident status` shows.
const shownEvents = 8

// ShowIncidentStatus shows an incident with its last events; nil = none is open.
func ShowIncidentStatus(p *output.Printer, schema string, r *incidents.IncidentReport) error {
	spec := output.ItemSpec[IncidentItem]{Schema: schema, Columns: IncidentStateColumns()}
	if r == nil {
		spec.Human = func(s *output.Sheet, _ IncidentItem) { s.Text("no incident is open") }
		return output.ShowItem(p, spec, noIncident())
	}
	spec.Human = func(s *output.Sheet, _ IncidentItem) {
		incidentPage(s, r, r.Timeline[max(0, len(r.Timeline)-shownEvents):])
	}
	return output.ShowItem(p, spec, knownItem(r))
}

// ShowWholeIncident shows an incident with its whole timeline.
func ShowWholeIncident(p *output.Printer, schema string, r *incidents.IncidentReport) error {
	page := func(s *output.Sheet, r *incidents.IncidentReport) { incidentPage(s, r, r.Timeline) }
	return output.ShowItem(p, output.ItemSpec[*incidents.IncidentReport]{Schema: schema, Columns: IncidentShowColumns(), Human: page}, r)
}

func incidentPage(s *output.Sheet, r *incidents.IncidentReport, events []incidents.IncidentEvent) {
	i := r.Incident
	s.Section(i.ID + ": " + cmp.Or(i.Start.Title, "no title"))
	s.Field("state", joinKnown(" as ", string(i.State), string(i.As)))
	if i.Problem != "" {
		s.FieldTone("problem", i.Problem, output.Bad)
	}
	s.Field("severity", cmp.Or(r.Severity, "not known"))
	if r.Alert != "" {
		s.Field("alert", r.Alert)
	}
	if i.Start.Runbook != "" {
		s.Field("runbook", i.Start.Runbook)
	}
	s.Field("started", output.Time(i.StartedAt))
	s.Field("by", i.StartedBy.Who+" on "+i.StartedBy.Host)
	if !i.StartedAt.IsZero() {
		s.Field("for", sandbox.FormatDuration(cmp.Or(i.ClosedAt, r.At).Sub(i.StartedAt).Round(time.Second)))
	}
	var rows [][]any
	for _, e := range events {
		rows = append(rows, []any{e.At.UTC().Format("01-02 15:04:05"), e.Who, e.Kind, EventText(e)})
	}
	if len(rows) > 0 {
		s.Section("timeline").Table([]string{"at (UTC)", "who", "what", "text"}, rows)
	}
}

// EventText is one line about an event.
func EventText(e incidents.IncidentEvent) string {
	switch {
	case e.Said != nil:
		return saidText(*e.Said)
	case e.Step != nil:
		return stepText(*e.Step)
	case e.Seen != nil && e.Seen.Message != nil:
		return joinKnown("; ", e.Seen.Text, prefixed("to ", strings.Join(e.Seen.Message.To, ", ")), prefixed("not sent: ", e.Seen.Message.Error))
	case e.Seen != nil:
		return joinKnown("; ", e.Verb, figuresText(e.Seen.Figures), causeText(e.Seen.Causes), flagsText(*e.Seen), e.Seen.Text, errorsText(e.Seen.Errors))
	}
	return joinKnown("; ", e.Verb, actsText(e.Acts))
}

func saidText(e incident.Event) string {
	switch e.Kind {
	case incident.Started:
		if e.Start != nil {
			return joinKnown("; ", e.Start.Title, prefixed("alert ", e.Start.Alert), prefixed("runbook ", e.Start.Runbook))
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

func figuresText(figures []history.Figure) string {
	var parts []string
	for _, f := range figures {
		if f.Value != nil {
			parts = append(parts, fmt.Sprintf("%s %d", f.Name, *f.Value))
		}
	}
	return strings.Join(parts, ", ")
}

// actsText counts the outcomes of acts.
func actsText(acts []cleanup.Act) string {
	counts := map[string]int{}
	var words []string
	for _, a := range acts {
		word := a.Action + " " + cmp.Or(string(a.Outcome), "outcome unknown")
		if counts[word]++; counts[word] == 1 {
			words = append(words, word)
		}
	}
	if len(acts) == 1 {
		return acts[0].Ref.String() + " " + words[0]
	}
	for i, word := range words {
		words[i] = fmt.Sprintf("%s %d", word, counts[word])
	}
	return strings.Join(words, ", ")
}

func causeText(causes []history.Cause) string {
	if len(causes) == 0 {
		return ""
	}
	return fmt.Sprintf("cause: %s (%s)", causes[0].Title, causes[0].Confidence)
}

// flagsText counts flags, and names the targets that are missed.
func flagsText(e history.Event) string {
	var parts, missed []string
	if n := len(e.Flags); n > 0 {
		parts = append(parts, fmt.Sprintf("%d flags", n))
	}
	for _, c := range e.Targets {
		if c.Verdict == sandbox.False {
			missed = append(missed, c.Title)
		}
	}
	if len(e.Targets) > 0 {
		parts = append(parts, joinKnown(": ", fmt.Sprintf("%d of %d targets missed", len(missed), len(e.Targets)), strings.Join(missed, ", ")))
	}
	return strings.Join(parts, ", ")
}

func errorsText(errs []string) string {
	if len(errs) > 1 {
		return fmt.Sprintf("%s (and %d more errors)", errs[0], len(errs)-1)
	}
	return strings.Join(errs, "")
}

func stepText(s incident.Step) string {
	text := fmt.Sprintf("%s: %s: %s", s.ID, s.Title, strings.ReplaceAll(s.State, "_", " "))
	if s.Verdict != "" {
		text += ", " + s.Verdict
	}
	return joinKnown("; ", text, s.Text, prefixed("answer: ", s.Answer))
}
