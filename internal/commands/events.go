package commands

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
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

type eventsOptions struct{ diff, stats bool }

func newEvents(d *Deps) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:     "events FILE",
		GroupID: groupLook,
		Short:   "Show what an agent did: its events, oldest first",
		Long: "Show what an agent did: its events, oldest first, each in one line. FILE is a session in\n" +
			"JSONL as OmoiOS stores it, one event a line; - is standard input.\n\n" +
			"The heartbeats of a run are one line; -v shows each. --diff shows each change of a file\n" +
			"as a unified diff; a terminal shows the first 40 lines of each, with -v all. --stats counts\n" +
			"events, tools, files, errors and heartbeats, and says whether the run has the usual shape.\n\n" +
			"Lines that are no events, come twice or are out of order are named on stderr, and the\n" +
			"others are shown.",
		Example: "sbx events session.jsonl\n" +
			"sbx events session.jsonl --diff\n" +
			"sbx events session.jsonl --stats -o json",
		Args:              usageArgs(oneArg("FILE"), "name one session: sbx events session.jsonl"),
		ValidArgsFunction: completeSessions,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.diff, "diff", false, "show the changes of files as diffs")
	f.BoolVar(&o.stats, "stats", false, "count instead of listing")
	cmd.AddCommand(newEventsCompare(d))
	doc := document{schema: eventsSchema, shape: output.ShapeList, columns: output.Names(views.EventColumns()), refuses: []output.FormatName{output.NameOnly}}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		return runEvents(ctx, d, p, args[0], o)
	})
}

// completeSessions offers files.
func completeSessions(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

func runEvents(ctx context.Context, d *Deps, p *output.Printer, word string, o eventsOptions) error {
	if err := o.check(p); err != nil {
		return err
	}
	if err := d.checkSession(word); err != nil {
		return err
	}
	r, err := look.Events(ctx, d.Env, look.EventsRequest{Word: word, Diffs: o.diff, Input: d.Process.Stdin}, d.newObserver(p, nil))
	switch {
	case err != nil:
		return err
	case o.stats:
		return views.ShowEventStats(p, eventStatsSchema, r)
	}
	shown := views.EventsOptions{Diff: o.diff, All: d.Globals.Verbose > 0}
	if d.Process.Stdout.TTY && !shown.All {
		shown.DiffLines, shown.LineLength = maxDiffLines, maxLineLength
	}
	return views.ShowEvents(p, eventsSchema, r, shown)
}

func (o eventsOptions) check(p *output.Printer) error {
	switch {
	case o.diff && o.stats:
		return fault.Usage("--diff and --stats exclude each other")
	case o.stats && len(p.Columns) > 0:
		return fault.Usage("events --stats has no columns").WithHint("leave --columns or --stats out")
	}
	return nil
}

// checkSession refuses a word that is no file.
func (d *Deps) checkSession(word string) error {
	switch file, err := look.IsSessionFile(d.Env, word); {
	case err != nil:
		return err
	case !file:
		return fault.Usage("%s: there is no such file", word).WithHint("name a session in JSONL that has .jsonl or %q in its name, or - for standard input", os.PathSeparator)
	}
	return nil
}

func newEventsCompare(d *Deps) *cobra.Command {
	form := string(views.CompareTable)
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare what two agents did",
		Long: "Compare what two agents did, and name the first event in which they differ. A and B are\n" +
			"sessions as in `sbx events`.\n\n" +
			"What is compared is the work: all events in their order without heartbeats and waits,\n" +
			"and of each all but ids, times, numbers of turns and costs. The first tool use, change of\n" +
			"a file or end that differs is named beside it, since two agents seldom use the same words.\n" +
			"Then follow the tools and files of one alone, the files that both changed differently, and\n" +
			"the figures of both. --format markdown prints it for a ticket.\n\n" +
			"Exit 0: both did the same work. 10: they differ.",
		Example:           "sbx events compare good.jsonl bad.jsonl\nsbx events compare good.jsonl bad.jsonl --format markdown",
		Args:              usageArgs(exactlyTwo, "name two sessions: sbx events compare A.jsonl B.jsonl"),
		ValidArgsFunction: completeSessions,
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
		if err := d.checkSession(word); err != nil {
			return err
		}
		both[i] = look.EventsRequest{Word: word, Input: d.Process.Stdin}
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
