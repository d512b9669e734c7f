package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/views"
)

type runbookTestOptions struct {
	file    string
	folders []string
	update  bool
}

func newRunbookTest(d *Deps) *cobra.Command {
	var o runbookTestOptions
	cmd := &cobra.Command{
		Use:        "test [ID...]",
		SuggestFor: []string{"replay"},
		Short:      "Judge recorded incidents again, and name those that would change",
		Long: "Judge recorded incidents again, by the thresholds in force now and by the conditions of\n" +
			"runbooks, all or those named, and compare with what was concluded then: which sandboxes\n" +
			"are stuck, the causes, flags and alerts, the targets of verify, what a cleanup of stuck\n" +
			"sandboxes selects, and the checks, branches and escalations of each runbook.\n\n" +
			"It reads the snapshots in --dir, and calls no provider. `diagnose --snapshot FILE` writes\n" +
			"one. Whom a profile owned, and what was protected, is as it was then.\n\n" +
			"Exit 0: all are judged as they were. 10: some are not, and each is named with what\n" +
			"changes. 3: a file cannot be read. --update accepts what differs.",
		Example:           "sbx runbook test --dir runbooks/incidents\nsbx runbook test sandbox-stuck --dir runbooks/incidents\nsbx runbook test --dir runbooks/incidents --update",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: d.completeRunbooks,
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "test the runbook in `FILE` instead")
	f.StringSliceVar(&o.folders, "dir", nil, "the snapshots in a `FOLDER` (repeatable; needed)")
	f.BoolVar(&o.update, "update", false, "accept what differs")
	doc := document{schema: "sbx.runbook.test/v1", shape: output.ShapeList, columns: output.Names(views.RunbookTestColumns()), refuses: []output.FormatName{output.NameOnly}}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		return d.testRunbooks(ctx, p, doc.schema, args, o)
	})
}

func (d *Deps) testRunbooks(ctx context.Context, p *output.Printer, schema string, ids []string, o runbookTestOptions) error {
	switch {
	case o.file != "" && len(ids) > 0:
		return fault.Usage("ids and --file exclude each other")
	case len(o.folders) == 0:
		return fault.Usage("--dir names the folder of the snapshots").WithHint("`diagnose --snapshot FILE` writes one")
	}
	books, err := d.chosenRunbooks(ctx, ids, o.file)
	if err != nil {
		return err
	}
	looks, err := ops.RecordedLooks(ctx, d.Env, o.folders)
	if err != nil {
		return err
	}
	tests, err := runbook.TestLooks(ctx, d.Env, looks, books)
	if err != nil {
		return err
	}
	accepted := map[string]bool{}
	for i := range tests {
		if t := &tests[i]; o.update && t.Err == nil && len(t.Changes)+len(t.Settings) > 0 {
			if err := t.Accept(); err != nil {
				return err
			}
			accepted[t.File] = true
		}
	}
	return views.ShowRunbookTests(p, schema, tests, accepted)
}

// chosenRunbooks are those with the ids, that of a file, or all.
func (d *Deps) chosenRunbooks(ctx context.Context, ids []string, file string) ([]*runbook.Runbook, error) {
	if file != "" {
		book, err := d.findRunbook(ctx, nil, file)
		return []*runbook.Runbook{book}, err
	}
	shelf, err := d.loadRunbooks(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(ids) == 0:
		return shelf.Books, nil
	}
	var books []*runbook.Runbook
	for _, id := range ids {
		book, err := shelf.Find(id)
		if err != nil {
			return nil, err
		}
		books = append(books, book)
	}
	return books, nil
}
