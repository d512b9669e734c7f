package commands

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/ops/incidents"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

func newIncident(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "incident",
		GroupID: groupLook,
		Short:   "Open an incident, note what is said, and report it",
		Long: "Open an incident, note what people say, and close it. Its report puts that together with\n" +
			"what sbx has on record of that time: times, timeline, evidence, causes, what was done,\n" +
			"verification, and what is left to do.\n\n" +
			"One incident is open at a time on a host. Its record is a folder below `incidents` in\n" +
			"the state directory, with a journal that shows if somebody changes it.",
		Example: "sbx incident start --title 'agents hang'\nsbx incident status",
		Args:    unknownVerb(d),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newIncidentStart(d), newIncidentNote(d), newIncidentAck(d), newIncidentStatus(d), newIncidentClose(d),
		newIncidentLs(d), newIncidentShow(d), newIncidentReport(d))
	return cmd
}

// incidentDocument is that of the verbs that show one incident in short.
func incidentDocument(verb string) document {
	return document{schema: "sbx.incident." + verb + "/v1", shape: output.ShapeItem, columns: output.Names(views.IncidentColumns())}
}

func (d *Deps) completeIncidents(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	all, _, err := incidents.Incidents(d.Env)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, i := range all {
		words = append(words, i.ID+"\t"+output.EscapeLine(i.Start.Title))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func firstWord(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// atMostOneIncident takes an id, which a shell variable that is not set would leave empty.
func atMostOneIncident(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && args[0] == "" {
		return fault.Usage("an ID is empty").WithHint("is a shell variable unset?")
	}
	return usageArgs(atMostOneArg("ID"), "`sbx incident ls` lists them")(cmd, args)
}

func newIncidentStart(d *Deps) *cobra.Command {
	var req incidents.IncidentStart
	var detected string
	cmd := &cobra.Command{
		Use:        "start",
		SuggestFor: []string{"open", "begin", "declare", "new"},
		Short:      "Start an incident",
		Long: "Start an incident. What sbx sees and does until `sbx incident close` is part of its report.\n\n" +
			"While one is open, a second is refused (exit 11). When it was detected, its alert and\n" +
			"its severity are those of the alert that fires for the longest time, if any; the flags\n" +
			"say otherwise. Typed on a terminal it is acknowledged, too.",
		Example: "sbx incident start --title 'agents hang after deploy' --runbook sandbox-stuck\nsbx incident start --alert sandbox_stuck -o json",
		Args:    d.noWords("--title gives it a title"),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&req.Title, "title", "", "what it is about, `TEXT`")
	f.StringVar(&req.Runbook, "runbook", "", "the runbook that is followed, `ID`; default: that of the alert")
	f.StringVar(&req.Alert, "alert", "", "the alert that it is about, `ID`")
	f.StringVar(&req.Severity, "severity", "", "`WORD`: critical or warning; default: that of the alert")
	f.StringVar(&detected, "detected", "", "when it was detected, `TIME`: 10m (ago), 14:05, RFC 3339")
	f.BoolVar(&req.Acknowledge, "ack", false, "somebody works on it (default on a terminal)")
	completeFlagFunc(cmd, "runbook", d.completeRunbooks)
	completeFlag(cmd, "severity", func() []string { return []string{"critical", "warning"} })
	doc := incidentDocument("start")
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) (err error) {
		req.Providers = d.Globals.Providers
		req.Acknowledge = req.Acknowledge || d.isAttended()
		if req.Severity != "" && req.Severity != "critical" && req.Severity != "warning" {
			return fault.Usage("--severity: %q is neither critical nor warning", req.Severity)
		}
		if req.DetectedAt, err = pastMoment("--detected", detected, d.Now()); err != nil {
			return err
		}
		if err := d.chooseRunbook(ctx, p, &req); err != nil {
			return err
		}
		i, err := incidents.StartIncident(ctx, d.Env, req)
		if err != nil {
			return err
		}
		return views.ShowIncident(p, doc.schema, i, i.ID+" is open; `"+d.Process.Name()+" incident close` ends it")
	})
}

// chooseRunbook refuses a runbook that does not exist, and takes that of the alert. Without one it warns.
func (d *Deps) chooseRunbook(ctx context.Context, p *output.Printer, req *incidents.IncidentStart) error {
	if req.Runbook == "" && req.Alert == "" {
		return nil
	}
	shelf, err := d.loadRunbooks(ctx)
	if err != nil {
		return err
	}
	if req.Runbook != "" {
		_, err := shelf.Find(req.Runbook)
		return err
	}
	book, err := shelf.ForAlert(req.Alert)
	if err == nil {
		req.Runbook = string(book.Metadata.ID)
		return nil
	}
	text := err.Error() // an alert of another system may have none
	if hint := fault.HintOf(err); hint != "" {
		text += "; " + hint
	}
	p.Warn(text)
	return nil
}

// pastMoment reads a moment that is not in the future; "" is none.
func pastMoment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := sandbox.ParseMoment(text, now)
	switch {
	case err != nil:
		return time.Time{}, fault.Usage("%s: %w", flag, err)
	case at.After(now):
		return time.Time{}, fault.Usage("%s: %s is in the future", flag, at.UTC().Format(time.RFC3339))
	}
	return at, nil
}

func newIncidentNote(d *Deps) *cobra.Command {
	var req incidents.IncidentNote
	var at, milestone string
	cmd := &cobra.Command{
		Use:        "note TEXT...",
		SuggestFor: []string{"add", "comment", "log"},
		Short:      "Add a note to the open incident",
		Long: "Add a note to the open incident, or to another one (--incident), also after its end.\n\n" +
			"With --mark the note says when the incident was detected, acknowledged, mitigated or\n" +
			"verified; in the report it takes the place of what sbx has found. With --answer it\n" +
			"answers a question of the runbook, by the id that the report shows.",
		Example: "sbx incident note 'the deploy of 14:02 was rolled back'\nsbx incident note --mark mitigated --at 10m 'rollback done'\nsbx incident note --answer changes 'yes: a new retry loop' -o json",
		Args:    usageArgs(atLeastOneArg("TEXT"), "quote the text"),

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&req.Word, "incident", "", "the incident `ID` instead of the open one")
	f.StringVar(&at, "at", "", "when it was, `TIME`: 10m (ago), 14:05, RFC 3339")
	f.StringVar(&milestone, "mark", "", "it is the `MILESTONE`: detected, acknowledged, mitigated or verified")
	f.StringVar(&req.Question, "answer", "", "it answers the `QUESTION` of the runbook, by its id")
	completeFlagFunc(cmd, "incident", d.completeIncidents)
	completeFlag(cmd, "mark", markWords)
	doc := incidentDocument("note")
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) (err error) {
		if req.Text = strings.TrimSpace(strings.Join(args, " ")); req.Text == "" {
			return fault.Usage("the note is empty").WithHint("is a shell variable unset?")
		}
		if req.Milestone, err = parseMark(milestone); err != nil {
			return err
		}
		if req.At, err = pastMoment("--at", at, d.Now()); err != nil {
			return err
		}
		req.Runs, req.Plan = d.runFinder(), d.reportPlan(ctx)
		i, err := incidents.NoteIncident(ctx, d.Env, req)
		if err != nil {
			return err
		}
		return views.ShowIncident(p, doc.schema, i, "noted in "+i.ID)
	})
}

// markWords are the milestones that a note may mark: all but the end.
func markWords() []string {
	return slices.DeleteFunc(wordsOf(incident.Milestones()), func(word string) bool { return word == string(incident.MilestoneClosed) })
}

func parseMark(word string) (incident.Milestone, error) {
	if word == "" || slices.Contains(markWords(), word) {
		return incident.Milestone(word), nil
	}
	return "", fault.Usage("--mark: %q is not a milestone", word).WithHint("%s", fault.Meant(word, markWords()))
}

func newIncidentAck(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "ack [ID]",
		SuggestFor:        []string{"acknowledge"},
		Short:             "Say that you work on the open incident",
		Long:              "Say that you work on the open incident. The first to do so has acknowledged it, and the\nreport says when.",
		Example:           "sbx incident ack",
		Args:              atMostOneIncident,
		ValidArgsFunction: d.completeIncidents,
	}
	doc := incidentDocument("ack")
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		i, err := incidents.NoteIncident(ctx, d.Env, incidents.IncidentNote{Word: firstWord(args), Milestone: incident.MilestoneAcknowledged, Text: ""})
		if err != nil {
			return err
		}
		return views.ShowIncident(p, doc.schema, i, i.ID+" is acknowledged")
	})
}

func newIncidentStatus(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the open incident",
		Long: "Show the open incident with its last events. Without one the state is none, which is\n" +
			"exit 0, too.",
		Example: "sbx incident status\nsbx incident status -o json",
		Args:    d.noWords("`sbx incident show ID` shows another one"),
	}
	doc := incidentDocument("status")
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		r, err := incidents.ReportIncident(ctx, d.Env, incidents.ReportRequest{Runs: d.runFinder()})
		if err != nil && fault.KindOf(err) != fault.KindNotFound {
			return err
		}
		return views.ShowIncidentStatus(p, doc.schema, r)
	})
}

func newIncidentClose(d *Deps) *cobra.Command {
	req := incidents.IncidentClose{}
	as := string(incident.Resolved)
	cmd := &cobra.Command{
		Use:        "close [ID]",
		SuggestFor: []string{"end", "finish", "resolve", "stop"},
		Short:      "Close the open incident",
		Long: "Close the open incident. What comes later is not part of it; notes still can be added.\n" +
			"Its report can be made at any time; what looks have seen is kept for a week.\n\n" +
			"A record that is damaged is left as it is, and is not open any more.",
		Example:           "sbx incident close\nsbx incident close --as false-alarm --note 'load test'",
		Args:              atMostOneIncident,
		ValidArgsFunction: d.completeIncidents,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&as, "as", as, "how it ended, `WORD`: resolved, false-alarm or duplicate")
	f.StringVar(&req.Text, "note", "", "a last note, `TEXT`")
	completeFlag(cmd, "as", func() []string { return wordsOf(incident.Resolutions()) })
	doc := incidentDocument("close")
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		if req.As = incident.Resolution(as); !slices.Contains(incident.Resolutions(), req.As) {
			return fault.Usage("--as: %q is not an end of an incident", as).WithHint("%s", fault.Meant(as, wordsOf(incident.Resolutions())))
		}
		req.Word = firstWord(args)
		i, left, err := incidents.CloseIncident(ctx, d.Env, req)
		if err != nil {
			return err
		}
		said := i.ID + " is closed as " + as + "; `" + d.Process.Name() + " incident report " + i.ID + "` reports it"
		if left != "" {
			p.Warn("the record of " + i.ID + " does not say that it was closed, since " + left)
			said = i.ID + " is not open any more"
		}
		return views.ShowIncident(p, doc.schema, i, said)
	})
}

func newIncidentLs(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List incidents, the newest first",
		Long:    "List the incidents of this host, the newest first. One whose record is damaged has the\nstate damaged, with the reason in `problem` (-o wide).",
		Example: "sbx incident ls\nsbx incident ls -o json",
		Args:    d.noWords("`sbx incident show ID` shows one"),
	}
	doc := document{schema: "sbx.incident.ls/v1", shape: output.ShapeList, columns: output.Names(views.IncidentColumns())}
	return d.completeVerb(cmd, doc, func(_ context.Context, p *output.Printer, _ []string) error {
		all, errs, err := incidents.Incidents(d.Env)
		if err != nil {
			return err
		}
		return views.ShowIncidents(p, doc.schema, all, errs)
	})
}

func newIncidentShow(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show [ID]",
		SuggestFor:        []string{"cat", "view", "timeline", "log"},
		Short:             "Show an incident with its whole timeline",
		Long:              "Show an incident with its whole timeline: the open one, else the newest one, or that with\nan ID or the beginning of one.",
		Example:           "sbx incident show\nsbx incident show -o json",
		Args:              atMostOneIncident,
		ValidArgsFunction: d.completeIncidents,
	}
	doc := document{schema: "sbx.incident.show/v1", shape: output.ShapeItem, columns: output.Names(views.IncidentShowColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		r, err := incidents.ReportIncident(ctx, d.Env, incidents.ReportRequest{Word: firstWord(args), Newest: true, Runs: d.runFinder()})
		if err != nil {
			return err
		}
		for _, text := range r.Problems {
			p.Warn(r.Incident.ID + " is not shown whole: " + text)
		}
		return views.ShowWholeIncident(p, doc.schema, r)
	})
}
