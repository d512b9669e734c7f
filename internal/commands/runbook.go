package commands

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/views"
)

func newRunbook(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "runbook",
		GroupID: groupLook,
		Short:   "Run, read, check and write runbooks",
		Long: "Run, read, check and write runbooks.\n\n" +
			"A runbook is a document of YAML: the diagnosis, what to do for each cause, what shows\n" +
			"that it helped, whom to call, and what to do afterwards. sbx ships some. Yours are in\n" +
			"the folder runbooks beside the configuration; one with the id of a shipped one\n" +
			"replaces it. A page of Markdown is made from each.",
		Example: "sbx runbook ls\nsbx runbook show sandbox-stuck\nsbx runbook run sandbox-stuck --dry-run",
		Args:    d.noRunbook,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newRunbookLs(d), newRunbookShow(d), newRunbookRun(d), newRunbookRuns(d), newRunbookStatus(d), newRunbookLint(d), newRunbookNew(d),
		newRunbookRules(d),
	)
	return cmd
}

// noRunbook refuses words that are no command of `runbook`: the id of one needs a verb before it.
func (d *Deps) noRunbook(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if catalog, err := d.loadRunbooks(cmd.Context()); err == nil && slices.Contains(catalog.IDs(), args[0]) {
			return fault.Usage("%q is a runbook, not a command", args[0]).WithHint("did you mean `%s`?", lineOf(cmd, "run", args))
		}
	}
	return unknownVerb(d)(cmd, args)
}

// library is where this command finds runbooks.
func (d *Deps) library() (runbook.Library, error) {
	folder, err := d.Input().RunbookFolder()
	return runbook.Library{Shipped: d.Runbooks, Folder: folder}, err
}

// shippedRunbooks are the runbooks of this sbx, whatever the operator has.
func (d *Deps) shippedRunbooks(ctx context.Context) (*runbook.Catalog, error) {
	return runbook.Library{Shipped: d.Runbooks}.Load(ctx)
}

// loadRunbooks reads all runbooks.
func (d *Deps) loadRunbooks(ctx context.Context) (*runbook.Catalog, error) {
	library, err := d.library()
	if err != nil {
		return nil, err
	}
	return library.Load(ctx)
}

// findRunbook is the one with an id, or that of a file.
func (d *Deps) findRunbook(ctx context.Context, args []string, file string) (*runbook.Runbook, error) {
	if file != "" {
		catalog := &runbook.Catalog{}
		if err := catalog.AddFile(ctx, file); err != nil {
			return nil, err
		}
		id := ""
		if ids := catalog.IDs(); len(ids) > 0 {
			id = ids[0]
		}
		return catalog.Find(id)
	}
	catalog, err := d.loadRunbooks(ctx)
	if err != nil {
		return nil, err
	}
	return catalog.Find(args[0])
}

func (d *Deps) completeRunbooks(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	catalog, err := d.loadRunbooks(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, b := range catalog.Books {
		words = append(words, string(b.Metadata.ID)+"\t"+b.Metadata.Title)
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// oneRunbook takes an id, or none beside --file.
func oneRunbook(file *string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case *file != "" && len(args) > 0:
			return fault.Usage("an id and --file exclude each other").WithHint("leave the id or --file out")
		case *file == "" && len(args) != 1:
			return fault.Usage("%s takes the id of one runbook", cmd.Name()).WithHint("`sbx runbook ls` lists them")
		}
		return nil
	}
}

func newRunbookLs(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "ls",
		Aliases:    []string{"list"},
		SuggestFor: []string{"index"},
		Short:      "List the runbooks, with the alerts that lead to them",
		Long:       "List the runbooks, with the alerts that lead to them.\n\nOne that cannot be read is an error beside the list (exit 3).",
		Example:    "sbx runbook ls\nsbx runbook ls -o wide",
		Args:       d.noWords("`sbx runbook show ID` shows one"),
	}
	doc := document{schema: "sbx.runbook.ls/v1", shape: output.ShapeList, columns: output.Names(views.RunbookColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, _ []string) error {
		catalog, err := d.loadRunbooks(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, f := range catalog.Findings {
			errs = append(errs, f.AsError(fault.KindPartial))
		}
		return views.ShowRunbooks(p, doc.schema, catalog.Books, errs)
	})
}

func newRunbookShow(d *Deps) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:               "show ID",
		SuggestFor:        []string{"cat", "view", "read"},
		Short:             "Show one runbook",
		Long:              "Show one runbook as a page. Settings that it names stand there with their defaults.",
		Example:           "sbx runbook show sandbox-stuck\nsbx runbook show sandbox-stuck -o json",
		Args:              oneRunbook(&file),
		ValidArgsFunction: d.completeRunbooks,
	}
	cmd.Flags().StringVar(&file, "file", "", "show the document in `FILE`")
	doc := document{schema: "sbx.runbook.show/v1", shape: output.ShapeItem, columns: output.Names(views.RunbookDocumentColumns())}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		book, err := d.findRunbook(ctx, args, file)
		if err != nil {
			return err
		}
		return views.ShowRunbook(p, doc.schema, book)
	})
}

func newRunbookLint(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "lint [ID|FILE...]",
		SuggestFor: []string{"check", "validate", "verify", "test"},
		Short:      "Check runbooks for mistakes, all at once",
		Long: "Check runbooks for mistakes: all of them at once, each with its place. Without\n" +
			"ID or FILE all runbooks are checked, shipped ones and yours.\n\n" +
			"It finds what is no strict YAML, unknown keys and ids, conditions that cannot be\n" +
			"evaluated or over what nothing collects, causes that no step leads to, destructive\n" +
			"steps without a gate or without proof of their effect, steps without ETA, numbers in\n" +
			"prose that are thresholds, two runbooks for one alert, overdue reviews, and command\n" +
			"lines that sbx does not understand. With an error the exit code is 10; a warning is\n" +
			"exit 0.",
		Example: "sbx runbook lint\nsbx runbook lint -o json",
		Args:    cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	doc := document{
		schema: "sbx.runbook.lint/v1", shape: output.ShapeList, columns: output.Names(views.LintColumns()), refuses: []output.FormatName{output.NameOnly},
	}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		found, books, err := d.lintRunbooks(ctx, args)
		if err != nil {
			return err
		}
		return views.ShowLint(p, doc.schema, found, books)
	})
}

// lintRunbooks checks runbooks by their ids, files, or all runbooks; it says how many it read.
func (d *Deps) lintRunbooks(ctx context.Context, words []string) ([]runbook.Finding, int, error) {
	all, err := d.loadRunbooks(ctx)
	if err != nil {
		return nil, 0, err
	}
	shipped, err := d.shippedRunbooks(ctx)
	if err != nil {
		return nil, 0, err
	}
	c := runbook.Context{Now: d.Now(), Others: all.IDs(), Shipped: shipped.Books, CheckLine: d.lineChecker()}
	if len(words) == 0 {
		return all.Lint(c), len(all.Books), nil
	}
	named := &runbook.Catalog{}
	for _, word := range words {
		if named.AddFrom(all, word) {
			continue
		}
		if err := named.AddFile(ctx, word); err != nil {
			return nil, 0, err
		}
	}
	c.Others = append(c.Others, named.IDs()...)
	others := slices.DeleteFunc(slices.Clone(all.Books), func(b *runbook.Runbook) bool { return slices.Contains(named.IDs(), string(b.Metadata.ID)) })
	return named.Lint(c, others...), len(named.Books), nil
}
