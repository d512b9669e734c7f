package commands

import (
	"context"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/runbook"
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
	completeFlag(cmd, "format", reportFormWords)
	doc := document{schema: incidentReportSchema, shape: output.ShapeItem, columns: output.Names(views.IncidentReportColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		if !slices.Contains(reportFormWords(), form) {
			return fault.Usage("--format: %q is not a form of a report", form).WithHint("%s", fault.Meant(form, reportFormWords()))
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
		r, err := ops.ReportIncident(ctx, d.Env, ops.ReportRequest{Word: firstWord(args), Plan: d.reportPlan(ctx)})
		if err != nil {
			return err
		}
		return views.ShowIncidentReport(p, doc.schema, r, views.ReportFormat(form))
	})
}

func reportFormWords() []string {
	var words []string
	for _, f := range views.ReportFormats() {
		words = append(words, string(f))
	}
	return words
}

// reportPlan finds what a runbook asks for: the one that was followed, else that of the alert, else
// that of the cause.
func (d *Deps) reportPlan(ctx context.Context) ops.PlanFinder {
	return func(id, alert, cause string) (ops.ReportPlan, error) {
		shelf, err := d.loadRunbooks(ctx)
		if err != nil {
			return ops.ReportPlan{}, err
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
			return ops.ReportPlan{}, err
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

func newIncidentRedact(d *Deps) *cobra.Command {
	var patterns []string
	cmd := &cobra.Command{
		Use:        "redact [ID]",
		SuggestFor: []string{"censor", "scrub", "mask"},
		Short:      "Remove secrets from the record of an incident",
		Long: "Remove secrets from the events and the snapshots of an incident: the open one, else the\n" +
			"newest one, or that with an ID. Removed are the secrets of the configuration, what looks\n" +
			"like one (a password in an address, the value behind a name such as TOKEN, keys of\n" +
			"well-known services), and what a pattern matches in texts and ids of sandboxes. Times,\n" +
			"numbers and words of closed lists stay. A record that would be damaged is not changed\n" +
			"(exit 11).\n\n" +
			"The journal is chained anew, so that the chain does not show the change; an event of its\n" +
			"own says who did it, and in how many places. A process that is killed meanwhile leaves\n" +
			"the old record or the new one: repeat it then. The journals of `sbx audit` stay as\n" +
			"they are.",
		Example:           "sbx incident redact\nsbx incident redact --pattern 'customer-[0-9]+' -o json",
		Args:              atMostOneIncident,
		ValidArgsFunction: d.completeIncidents,
	}
	cmd.Flags().StringArrayVar(&patterns, "pattern", nil, "remove what the regular expression `RE` matches (repeatable)")
	doc := document{schema: "sbx.incident.redact/v1", shape: output.ShapeItem, columns: output.Names(views.RedactionColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		req := ops.IncidentRedaction{Word: firstWord(args)}
		for _, text := range patterns {
			pattern, err := regexp.Compile(text)
			if err != nil {
				return fault.Usage("--pattern: it is no regular expression").WithHint("see https://golang.org/s/re2syntax; it is not repeated here, since it may be a secret")
			}
			if pattern.MatchString("") {
				return fault.Usage("--pattern: it matches the empty text, and so everywhere")
			}
			req.Patterns = append(req.Patterns, pattern)
		}
		i, done, err := ops.RedactIncident(ctx, d.Env, req)
		if err != nil {
			return err
		}
		return views.ShowRedaction(p, doc.schema, i, done)
	})
}
