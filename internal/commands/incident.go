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
		Short:   "Report what happened, and note what people know",
		Long: "Report what happened in a run of a runbook, or in a span of time: times, timeline,\n" +
			"evidence, causes, what was done, verification, who was told, and what is left to do.\n\n" +
			"There is nothing to open, acknowledge or close: the run is the incident, and the report\n" +
			"is computed from what is on record. `sbx incident note` adds what a person knows.",
		Example: "sbx incident report --since 1h\nsbx incident note 'the deploy of 14:02 was rolled back'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := goneVerb(args[0]); err != nil {
					return err
				}
			}
			return unknownVerb(d)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newIncidentReport(d), newIncidentNote(d))
	return cmd
}

// goneVerbs are the verbs by which earlier versions kept incidents, each with what to do now.
func goneVerbs() map[string]string {
	const report = "a report of a span of time: `sbx incident report --since 14:00 --until 15:00`"
	return map[string]string{
		"start":  "a run of the runbook is the incident: `sbx runbook run sandbox-stuck`; " + report,
		"ack":    "the run of the runbook says who works on it; `sbx incident note --mark acknowledged TEXT` says it otherwise",
		"close":  "nothing is open: a run of a runbook ends by itself; " + report,
		"status": "`sbx runbook status` shows the newest run of a runbook",
		"show":   "`sbx incident report` has the whole timeline, of a run, a span of time or an incident of before (its id)",
		"ls":     "`sbx runbook runs` lists runs of runbooks; `sbx incident report ID` still reports an incident of before",
		"list":   "`sbx runbook runs` lists runs of runbooks; `sbx incident report ID` still reports an incident of before",
	}
}

// goneVerb refuses a verb that is gone; nil = it is none.
func goneVerb(word string) error {
	hint, gone := goneVerbs()[word]
	if !gone {
		return nil
	}
	return fault.Usage("`sbx incident %s` is gone: there is nothing to open, acknowledge or close", word).WithHint("%s", hint)
}

// goneVerbOf is goneVerb of the first word behind `incident`, whose flags are gone with it.
func (d *Deps) goneVerbOf(cmd *cobra.Command) error {
	if cmd.Name() != "incident" {
		return nil
	}
	for _, t := range readTyped(allFlags(cmd), behind(d.Process.Args, cmd.Name())) {
		if !t.flag {
			return goneVerb(t.words[0])
		}
	}
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
	var req incidents.NoteRequest
	var at, milestone string
	cmd := &cobra.Command{
		Use:        "note TEXT...",
		SuggestFor: []string{"add", "comment", "log"},
		Short:      "Note what a person knows, for the reports of its time",
		Long: "Note what a person knows. Reports of its time have it, and so has the report of the run of\n" +
			"a runbook after which it was noted, until the next run begins. With --provider it is\n" +
			"about those profiles alone. It is kept in the store: on this host, or for all hosts\n" +
			"where they share one.\n\n" +
			"With --mark the note says when the incident was detected, acknowledged, mitigated or\n" +
			"verified; in the report it takes the place of what sbx has found. With --answer it\n" +
			"answers a question of the runbook, by the id that the report shows.",
		Example: "sbx incident note 'the deploy of 14:02 was rolled back'\nsbx incident note --mark mitigated --at 10m 'rollback done'\nsbx incident note --answer changes 'yes: a new retry loop' -o json",
		Args:    usageArgs(atLeastOneArg("TEXT"), "quote the text"),

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&at, "at", "", "when it was, `TIME`: 10m (ago), 14:05, RFC 3339")
	f.StringVar(&milestone, "mark", "", "it is the `MILESTONE`: detected, acknowledged, mitigated or verified")
	f.StringVar(&req.Question, "answer", "", "it answers the `QUESTION` of a runbook, by its id")
	completeFlag(cmd, "mark", func() []string { return wordsOf(incident.Milestones()) })
	completeFlagFunc(cmd, "answer", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		words, _ := d.questions(cmd.Context())
		return words, cobra.ShellCompDirectiveNoFileComp
	})
	doc := document{schema: "sbx.incident.note/v1", shape: output.ShapeItem, columns: output.Names(views.NoteColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) (err error) {
		if req.Text = strings.TrimSpace(strings.Join(args, " ")); req.Text == "" {
			return fault.Usage("the note is empty").WithHint("is a shell variable unset?")
		}
		if req.Milestone = incident.Milestone(milestone); milestone != "" && !slices.Contains(incident.Milestones(), req.Milestone) {
			return fault.Usage("--mark: %q is not a milestone", milestone).WithHint("%s", fault.Meant(milestone, wordsOf(incident.Milestones())))
		}
		if req.At, err = pastMoment("--at", at, d.Now()); err != nil {
			return err
		}
		req.Providers, req.Questions = d.Globals.Providers, func() ([]string, error) { return d.questions(ctx) }
		c, err := d.Config()
		if err != nil {
			return err
		}
		n, err := incidents.Note(ctx, d.Env, req)
		if err != nil {
			return err
		}
		return views.ShowNote(p, doc.schema, d.Process.Name(), n, c.StoreURL != "")
	})
}

// questions are the ids of the questions that runbooks ask.
func (d *Deps) questions(ctx context.Context) (ids []string, err error) {
	catalog, err := d.loadRunbooks(ctx)
	if err != nil {
		return nil, err
	}
	for _, book := range catalog.Books {
		for _, q := range book.Afterwards().Questions {
			ids = append(ids, q.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
