package commands

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops/incidents"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/views"
)

const incidentReportSchema = "sbx.incident.report/v1"

// reportOptions are the flags of `sbx incident report`, as typed.
type reportOptions struct{ since, until, title, form, template string }

func newIncidentReport(d *Deps) *cobra.Command {
	o := reportOptions{form: string(views.ReportMarkdown)}
	cmd := &cobra.Command{
		Use:        "report [RUN]",
		SuggestFor: []string{"postmortem", "rca", "summary"},
		Short:      "Print the report of a run of a runbook, or of a span of time",
		Long: "Print the report of a run of a runbook, by its id or the beginning of it (b-...), or of a\n" +
			"span of time (--since, --until). Without either it is the newest run. An incident that\n" +
			"an earlier version recorded is reported by its id (i-...).\n\n" +
			"It is Markdown; with --format slack a message for Slack. `-o json` has all of it, and\n" +
			"--template FILE makes of that what a team wants: a template of Go (text/template) over\n" +
			"the document, as with `-o template-file=FILE`.\n\n" +
			"What is not on record is said to be not known. What only people can answer stays open\n" +
			"as \"needs a person\"; `sbx incident note --answer QUESTION TEXT` answers it.",
		Example:           "sbx incident report --since 1h\nsbx incident report --since 30m --until 10m --provider local --format slack\nsbx incident report --since 1h --title 'agents hang' -o json",
		Args:              atMostOneRun,
		ValidArgsFunction: d.completeIncidents,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.since, "since", "", "report what is on record since `TIME`: 1h (ago), 14:00, RFC 3339")
	f.StringVar(&o.until, "until", "", "until `TIME`; default: now")
	f.StringVar(&o.title, "title", "", "its title, `TEXT`; default: that of the runbook")
	f.StringVar(&o.form, "format", o.form, "`FORM` for people: markdown or slack")
	f.StringVar(&o.template, "template", "", "fill the template in `FILE`")
	completeFlag(cmd, "format", func() []string { return wordsOf(views.ReportFormats()) })
	doc := document{schema: incidentReportSchema, shape: output.ShapeItem, columns: output.Names(views.IncidentReportColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		if err := o.checkForm(ctx, d, p); err != nil {
			return err
		}
		scope, err := o.findScope(ctx, d, args)
		if err != nil {
			return err
		}
		r, err := incidents.ReportIncident(ctx, d.Env, incidents.ReportRequest{Scope: scope, Runs: d.runFinder(), Plan: d.reportPlan(ctx)})
		if err != nil {
			return err
		}
		return views.ShowIncidentReport(p, doc.schema, r, views.ReportFormat(o.form))
	})
}

// atMostOneRun takes an id, which a shell variable that is not set would leave empty.
func atMostOneRun(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] == "" {
		return fault.Usage("a RUN is empty").WithHint("is a shell variable unset?")
	}
	return usageArgs(atMostOneArg("RUN"), "`sbx runbook runs` lists them")(cmd, args)
}

func (d *Deps) completeIncidents(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	words, how := d.completeRunbookRuns(cmd, args, word)
	if folder, err := d.Incidents(); err == nil {
		ids, _ := folder.IDs()
		words = append(words, ids...)
	}
	return words, how
}

func (o reportOptions) checkForm(ctx context.Context, d *Deps, p *output.Printer) error {
	switch {
	case !slices.Contains(wordsOf(views.ReportFormats()), o.form):
		return fault.Usage("--format: %q is not a form of a report", o.form).WithHint("%s", fault.Meant(o.form, wordsOf(views.ReportFormats())))
	case o.template == "":
		return nil
	case d.Globals.Output != "":
		return fault.Usage("--template and -o exclude each other")
	}
	filled, err := output.ParseFormat(ctx, string(output.TemplateFile)+"="+d.Path(o.template))
	if err == nil {
		p.Format = filled
	}
	return err
}

// findScope is what was asked for: a span of time, or a run.
func (o reportOptions) findScope(ctx context.Context, d *Deps, args []string) (scope incidents.Scope, err error) {
	since, err := pastMoment("--since", o.since, d.Now())
	if err != nil {
		return scope, err
	}
	until, err := pastMoment("--until", o.until, d.Now())
	if err != nil {
		return scope, err
	}
	if err := incidents.CheckSpan(since, until); err != nil {
		return scope, err
	}
	switch {
	case since.IsZero():
		scope, err = engine.FindIncident(ctx, d.Env, strings.Join(args, ""))
	case len(args) > 0:
		err = fault.Usage("RUN and --since exclude each other").WithHint("a run has its own time")
	default:
		scope = incidents.Scope{Since: since, Until: until}
	}
	if len(d.Globals.Providers) > 0 {
		scope.Providers = d.Globals.Providers
	}
	scope.Title = cmp.Or(d.RedactText(o.title), scope.Title)
	return scope, err
}

// runFinder reads the runs of runbooks; nil without a state directory.
func (d *Deps) runFinder() incidents.RunFinder {
	disk, err := d.RunbookRuns()
	if err != nil {
		return nil
	}
	return engine.RunsOfIncident(disk)
}

// reportPlan finds what a runbook asks for: the one that was run, else that of the alert, else that of the cause.
func (d *Deps) reportPlan(ctx context.Context) incidents.PlanFinder {
	return func(id, alert, cause string) (incidents.ReportPlan, error) {
		catalog, err := d.loadRunbooks(ctx)
		if err != nil {
			return incidents.ReportPlan{}, err
		}
		if id == "" && alert != "" {
			if book, err := catalog.ForAlert(alert); err == nil {
				id = string(book.Metadata.ID)
			}
		}
		if id == "" {
			id = runbook.ForCause(cause)
		}
		book, err := catalog.Find(id)
		if err != nil {
			return incidents.ReportPlan{}, err
		}
		plan := book.Afterwards()
		if general, err := catalog.Find(runbook.ForCause("")); err == nil { // for a runbook without its own
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
