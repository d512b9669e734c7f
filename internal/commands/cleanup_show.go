package commands

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/output"
)

func newCleanupShow(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show one run that ended sandboxes: its rule, and what became of each",
		Long: "Show one run that ended sandboxes: its rule, who ran it, and what became of each\n" +
			"sandbox, with what was known of it before (-o json).\n\n" +
			"RUN is the run_id that cleanup, reconcile and terminate print, or a beginning of\n" +
			"it that only one run has; `last` is the newest bulk run. The endings of tasks and\n" +
			"drills have runs too, which `sbx inspect` names. Of a run of another host the\n" +
			"sums are known (store.url).",
		Example:           "sbx cleanup show last\nsbx cleanup show r-20261120120000000-k3v9x2",
		Args:              usageArgs(cobra.ExactArgs(1), "`sbx cleanup runs` lists them"),
		ValidArgsFunction: d.completeRuns,
	}
	doc := document{schema: "sbx.cleanup.show/v1", shape: output.ShapeList, columns: output.Names(outcomeColumns())}
	return d.verb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		h, err := d.findRun(ctx, args[0])
		if err != nil {
			return err
		}
		return showHistory(p, doc.schema, h)
	})
}

// lastRun stands for the newest bulk run.
const lastRun = "last"

// minRunPrefix is how much of a run's name must be given: less is hardly meant.
const minRunPrefix = 4

// findRun reads the run that a word means: of this machine, else of another host.
func (e *Env) findRun(ctx context.Context, word string) (cleanup.History, error) {
	var found []func() (cleanup.History, error)
	var names []string
	match := func(name string, read func() (cleanup.History, error)) {
		if !slices.Contains(names, name) {
			names, found = append(names, name), append(found, read)
		}
	}
	if err := e.ownRuns(word, match); err != nil {
		return cleanup.History{}, err
	}
	shared, sharedErr := e.SharedRuns(ctx, 0)
	for _, run := range shared {
		if meansRun(word, run.ID) {
			match(run.ID, func() (cleanup.History, error) { return historyOfShared(run), nil })
		}
	}
	if word == lastRun && len(names) > 0 {
		newest := slices.Index(names, slices.Max(names)) // a name begins with its time
		return found[newest]()
	}
	if i := slices.Index(names, word); i >= 0 {
		return found[i]()
	}
	switch len(names) {
	case 1:
		return found[0]()
	case 0:
		if sharedErr != nil {
			return cleanup.History{}, sharedErr
		}
		return cleanup.History{}, fault.New(fault.KindNotFound, "no run is called %q", word).WithHint("`%s cleanup runs` lists the bulk runs", e.Process.Name())
	}
	return cleanup.History{}, fault.Usage("%q is the beginning of %d runs", word, len(names)).WithHint("%s", fewOf(names))
}

// ownRuns offers the runs of this machine that a word may mean. `last` means bulk runs
// alone.
func (e *Env) ownRuns(word string, match func(string, func() (cleanup.History, error))) error {
	disks := []func() (journal.Disk, error){e.Journals}
	if word != lastRun {
		disks = append(disks, e.Endings)
	}
	for _, open := range disks {
		disk, err := open()
		if err != nil {
			return err
		}
		runs, err := journal.Runs(disk)
		if err != nil {
			return err
		}
		for _, run := range runs {
			if meansRun(word, run) {
				match(run, func() (cleanup.History, error) { return cleanup.ReadRun(disk, run) })
			}
		}
	}
	return nil
}

func meansRun(word, run string) bool {
	return word == lastRun || word == run || len(word) >= minRunPrefix && strings.HasPrefix(run, word)
}

// fewOf names some of many.
func fewOf(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

func (d *Deps) completeRuns(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	disk, err := d.Journals()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	runs, _ := journal.Runs(disk) // what cannot be listed completes nothing
	slices.Reverse(runs)
	return runs, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
