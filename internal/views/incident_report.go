package views

import (
	"io"

	"sbx/internal/history"
	"sbx/internal/ops/incidents"
	"sbx/internal/output"
)

// ReportFormat is a form of a report for people.
type ReportFormat string

// The closed list.
const (
	ReportMarkdown ReportFormat = "markdown"
	ReportSlack    ReportFormat = "slack"
)

// ReportFormats are all forms.
func ReportFormats() []ReportFormat { return []ReportFormat{ReportMarkdown, ReportSlack} }

// IncidentReportColumns are the columns of an IncidentReportItem.
func IncidentReportColumns() []output.Column[*incidents.IncidentReport] {
	return output.Columns(reportItem)
}

// ShowIncidentReport prints a report: the text of a form for people, or the document.
func ShowIncidentReport(p *output.Printer, schema string, r *incidents.IncidentReport, form ReportFormat) error {
	if p.Format.Name() == output.Table && len(p.Columns) == 0 {
		text := IncidentMarkdown(r)
		if form == ReportSlack {
			text = IncidentSlack(r)
		}
		_, err := io.WriteString(p.Stdout(), text)
		return err
	}
	return output.ShowItem(p, output.ItemSpec[*incidents.IncidentReport]{Schema: schema, Columns: IncidentReportColumns()}, r)
}

// NoteColumns are the columns of a NoteItem.
func NoteColumns() []output.Column[NoteItem] {
	return output.Columns(func(n NoteItem) NoteItem { return n })
}

// ShowNote says where a note is kept, and how it is reported. Program is what sbx is called.
func ShowNote(p *output.Printer, schema, program string, n history.Note, shared bool) error {
	item := NoteItem{n.At, n.Text, n.Who, n.Host, listed(n.Providers), orNil(n.Milestone), orNil(n.Question), shared}
	where := "on this host"
	if shared {
		where = "in the shared store"
	}
	page := func(s *output.Sheet, _ NoteItem) {
		s.Text("noted " + where + "; `" + program + " incident report` has the notes of its time")
	}
	return output.ShowItem(p, output.ItemSpec[NoteItem]{Schema: schema, Columns: NoteColumns(), Human: page}, item)
}
