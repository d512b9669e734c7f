package views

import (
	"io"

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

// IncidentReportColumns are those of an IncidentReportItem.
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
