package commands

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/views"
)

const (
	eventsSchema        = "sbx.events/v1"
	eventStatsSchema    = "sbx.events.stats/v1"
	eventsCompareSchema = "sbx.events.compare/v1"
)

// Of a diff on a terminal.
const (
	maxDiffLines  = 40
	maxLineLength = 1000
)

type eventsOptions struct{ follow, diff, stats, noFile bool }

func newEvents(d *Deps) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:     "events REF|TASK|FILE",
		GroupID: groupLook,
		Short:   "Show what an agent did: its events, oldest first",
		Long: "Show what an agent did: its events, oldest first, each in one line.\n\n" +
			"Of a sandbox, or the last sandbox of a task, these are the events that OmoiOS has of its\n" +
			"agent, those of its life at the provider, and its end where sbx has it on record. FILE is\n" +
			"a session in JSONL: events in the form of OmoiOS, a transcript of Claude Code (below\n" +
			"~/.claude/projects), or a rollout file of Codex (below ~/.codex/sessions). It is a path of a\n" +
			"file that exists, with a separator or the ending .jsonl; - is standard input.\n\n" +
			"The heartbeats of a run are one line; -v shows each. --diff shows each change of a file\n" +
			"as a unified diff; a terminal shows the first 40 lines of each, with -v all. --stats counts\n" +
			"events, tools, files, errors, heartbeats and tokens, and says whether the run has the usual\n" +
			"shape.\n" +
			"-f goes on with new events, without heartbeats, until it is interrupted or the sandbox ends.\n\n" +
			"Lines that are no events, come twice, are out of order, of a type that is not known or copied\n" +
			"from another session are named on stderr, and the others are shown. So is a file that is\n" +
			"replaced while it is followed.",
		Example: "sbx events local/k3v9x2mq7a\n" +
			"sbx events local/k3v9x2mq7a -f\n" +
			"sbx events session.jsonl --diff\n" +
			"sbx events session.jsonl --stats -o json",
		Args:              usageArgs(oneArg("REF"), "name one sandbox, task or session: sbx events session.jsonl"),
		ValidArgsFunction: d.completeSessions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with new events until the sandbox ends")
	f.BoolVar(&o.diff, "diff", false, "show the changes of files as diffs")
	f.BoolVar(&o.stats, "stats", false, "count instead of listing")
	f.BoolVar(&o.noFile, "no-file", false, "take the word for a sandbox or a task, never for a file")
	cmd.AddCommand(newEventsCompare(d))
	doc := document{schema: eventsSchema, shape: output.ShapeList, columns: output.Names(views.EventColumns()), refuses: []output.FormatName{output.NameOnly}}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		return runEvents(ctx, d, p, args[0], o)
	})
}

// completeSessions offers sandboxes and files.
func (d *Deps) completeSessions(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	words, _ := d.refWords(cmd, args, word, offerAll)
	return words, cobra.ShellCompDirectiveDefault
}

func runEvents(ctx context.Context, d *Deps, p *output.Printer, word string, o eventsOptions) error {
	if err := o.check(p, word); err != nil {
		return err
	}
	req, err := d.eventsRequest(word, o.noFile)
	if err != nil {
		return err
	}
	req.Diffs, req.Follow = o.diff, o.follow
	watch := d.newObserver(p, nil)
	r, err := look.Events(ctx, d.Env, req, watch)
	switch {
	case err != nil:
		return err
	case o.stats:
		return views.ShowEventStats(ctx, p, eventStatsSchema, r)
	}
	shown := views.EventsOptions{Diff: o.diff, Follow: o.follow, All: d.Globals.Verbose > 0}
	if d.Process.Stdout.TTY && !shown.All {
		shown.DiffLines, shown.LineLength = maxDiffLines, maxLineLength
	}
	page, err := views.NewEventsPage(p, eventsSchema, r, shown)
	if err != nil {
		return err
	}
	if err = page.Add(ctx, r); err == nil && !o.follow {
		return page.Close(r, nil)
	}
	if err == nil {
		err = r.Follow(ctx, watch, func() error { return page.Add(ctx, r) })
	}
	if ctx.Err() == nil && err != nil {
		return err
	}
	return page.Close(r, ops.CauseOr(ctx, err))
}

func (o eventsOptions) check(p *output.Printer, word string) error {
	if o.follow {
		if err := p.Format.Allow("events -f", output.Table, output.WideTable, output.CSV, output.NDJSON); err != nil {
			return err
		}
	}
	switch {
	case o.follow && o.stats:
		return fault.Usage("-f and --stats exclude each other")
	case o.follow && word == "-":
		return fault.Usage("-f follows a sandbox or a file, not standard input")
	case o.diff && o.stats:
		return fault.Usage("--diff and --stats exclude each other")
	case o.stats && len(p.Columns) > 0:
		return fault.Usage("events --stats has no columns").WithHint("leave --columns or --stats out")
	}
	return nil
}

// eventsRequest says what a word means.
func (d *Deps) eventsRequest(word string, noFile bool) (look.EventsRequest, error) {
	if noFile {
		return look.EventsRequest{Word: word}, nil
	}
	file, err := look.IsSessionFile(d.Env, word)
	return look.EventsRequest{Word: word, File: file, Input: d.Process.Stdin}, err
}

func newEventsCompare(d *Deps) *cobra.Command {
	form := string(views.CompareTable)
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare what two agents did",
		Long: "Compare what two agents did, and name the first event in which they differ. A and B are\n" +
			"sandboxes, tasks or files as in `sbx events`.\n\n" +
			"What is compared is the work: all events in their order without heartbeats and waits,\n" +
			"and of each all but ids, times, numbers of turns and costs. Of two forms (Claude Code and\n" +
			"Codex) it is what the agents did: commands, changed lines, messages. The first tool use, change of\n" +
			"a file or end that differs is named beside it, since two agents seldom use the same words.\n" +
			"Then follow the tools and files of one alone, the files that both changed differently, and\n" +
			"the figures of both. --format markdown prints it for a ticket.\n\n" +
			"Exit 0: both did the same work. 10: they differ. 3: they are the same as far as they can\n" +
			"be read.",
		Example:           "sbx events compare good.jsonl bad.jsonl\nsbx events compare good.jsonl bad.jsonl --format markdown",
		Args:              usageArgs(exactlyTwo, "name two sessions: sbx events compare A.jsonl B.jsonl"),
		ValidArgsFunction: d.completeSessions,
	}
	cmd.Flags().StringVar(&form, "format", form, "`FORM` for people: table or markdown")
	completeFlag(cmd, "format", func() []string { return wordsOf(views.EventsCompareForms()) })
	doc := document{schema: eventsCompareSchema, shape: output.ShapeItem, columns: output.Names(views.EventsCompareColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		return compareEvents(ctx, d, p, args, form)
	})
}

func compareEvents(ctx context.Context, d *Deps, p *output.Printer, words []string, form string) error {
	if forms := wordsOf(views.EventsCompareForms()); !slices.Contains(forms, form) {
		return fault.Usage("--format: %q is not a form of a comparison", form).WithHint("%s", fault.Meant(form, forms))
	}
	if words[0] == words[1] && words[0] == "-" {
		return fault.Usage("standard input is one session").WithHint("name a file for the other")
	}
	var both [2]look.EventsRequest
	for i, word := range words {
		req, err := d.eventsRequest(word, false)
		if err != nil {
			return err
		}
		both[i] = req
	}
	c, err := look.CompareEvents(ctx, d.Env, both[0], both[1], d.newObserver(p, nil))
	if err != nil {
		return err
	}
	return views.ShowEventsComparison(p, eventsCompareSchema, c, views.EventsCompareForm(form))
}

// exactlyTwo takes two words.
func exactlyTwo(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("it takes two sessions, but %d were given", len(args))
	}
	return nil
}
