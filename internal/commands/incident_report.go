package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/incidents"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/views"
)

const incidentReportSchema = "sbx.incident.report/v1"

func newIncidentReport(d *Deps) *cobra.Command {
	form, template := string(views.ReportMarkdown), ""
	cmd := &cobra.Command{
		Use:        "report [ID]",
		SuggestFor: []string{"postmortem", "rca", "summary"},
		Short:      "Print the report of an incident",
		Long: "Print the report of an incident: the open one, else the newest one, or that with an ID.\n\n" +
			"It is Markdown; with --format slack a message for Slack. `-o json` has all of it, and\n" +
			"--template FILE makes of that what a team wants: a template of Go (text/template) over\n" +
			"the document, as with `-o template-file=FILE`.\n\n" +
			"What is not on record is said to be not known. What only people can answer stays open\n" +
			"as \"needs a person\"; `sbx incident note --answer QUESTION TEXT` answers it.",
		Example:           "sbx incident report\nsbx incident report --format slack\nsbx incident report -o json",
		Args:              atMostOneIncident,
		ValidArgsFunction: d.completeIncidents,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&form, "format", form, "`FORM` for people: markdown or slack")
	f.StringVar(&template, "template", "", "fill the template in `FILE`")
	completeFlag(cmd, "format", func() []string { return wordsOf(views.ReportFormats()) })
	doc := document{schema: incidentReportSchema, shape: output.ShapeItem, columns: output.Names(views.IncidentReportColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		if !slices.Contains(wordsOf(views.ReportFormats()), form) {
			return fault.Usage("--format: %q is not a form of a report", form).WithHint("%s", fault.Meant(form, wordsOf(views.ReportFormats())))
		}
		if template != "" {
			if d.Globals.Output != "" {
				return fault.Usage("--template and -o exclude each other")
			}
			filled, err := output.ParseFormat(ctx, string(output.TemplateFile)+"="+d.Path(template))
			if err != nil {
				return err
			}
			p.Format = filled
		}
		r, err := incidents.ReportIncident(ctx, d.Env, incidents.ReportRequest{Word: firstWord(args), Newest: true, Runs: d.runFinder(), Plan: d.reportPlan(ctx)})
		if err != nil {
			return err
		}
		return views.ShowIncidentReport(p, doc.schema, r, views.ReportFormat(form))
	})
}

// runFinder reads the runs of runbooks; nil without a state directory.
func (d *Deps) runFinder() incidents.RunFinder {
	disk, err := d.RunbookRuns()
	if err != nil {
		return nil
	}
	return engine.RunsOfIncident(disk)
}

// reportPlan finds what a runbook asks for: the one that was followed, else that of the alert, else
// that of the cause.
func (d *Deps) reportPlan(ctx context.Context) incidents.PlanFinder {
	return func(id, alert, cause string) (incidents.ReportPlan, error) {
		shelf, err := d.loadRunbooks(ctx)
		if err != nil {
			return incidents.ReportPlan{}, err
		}
		if id == "" && alert != "" {
			if book, err := shelf.ForAlert(alert); err == nil {
				id = string(book.Metadata.ID)
			}
		}
		if id == "" {
			id = runbook.ForCause(cause)
		}
		book, err := shelf.Find(id)
		if err != nil {
			return incidents.ReportPlan{}, err
		}
		plan := book.Afterwards()
		if general, err := shelf.Find(runbook.ForCause("")); err == nil { // for a runbook without its own
			if len(plan.Questions) == 0 {
				plan.Questions = general.Afterwards().Questions
			}
			if len(plan.Tasks) == 0 {
				plan.Tasks = general.Afterwards().Tasks
			}
		}
		return plan, nil
	}
}
