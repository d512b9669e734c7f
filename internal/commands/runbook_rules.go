package commands

import (
	"context"

	"github.com/spf13/cobra"

	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/views"
)

func newRunbookRules(d *Deps) *cobra.Command {
	var base string
	cmd := &cobra.Command{
		Use:        "rules [ID...]",
		SuggestFor: []string{"prometheus", "alerts"},
		Short:      "Print alerting rules for Prometheus",
		Long: "Print alerting rules for Prometheus (YAML): one for each alert that leads to a runbook, all\n" +
			"or those named, and one for a cleanup that does not run. They read what `cleanup --textfile`\n" +
			"and `reconcile --textfile` write; sbx itself applies thresholds and times (docs/ALERTS.md).\n\n" +
			"Each has a severity, who acts first, a summary and its runbook_url: the page of the runbook\n" +
			"below --base. What has no rule is a comment with the reason.",
		Example:           "sbx runbook rules\nsbx runbook rules sandbox-stuck --base https://wiki.example/runbooks",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: d.completeRunbooks,
	}
	cmd.Flags().StringVar(&base, "base", "runbooks", "the `URL` of the folder with the pages")
	doc := document{
		schema: "sbx.runbook.rules/v1", shape: output.ShapeList, columns: output.Names(views.PrometheusColumns()),
		refuses: []output.FormatName{output.NameOnly},
	}
	return d.completeVerb(cmd, doc, func(ctx context.Context, p *output.Printer, args []string) error {
		if _, err := d.Config(); err != nil { // or the defaults would be in the rules
			return err
		}
		books, err := d.chosenRunbooks(ctx, args)
		if err != nil {
			return err
		}
		limits := d.Thresholds(sandbox.Sandbox{})
		return views.ShowPrometheusRules(p, doc.schema, runbook.PrometheusRules(books, limits, base), runbook.WithoutRule(books))
	})
}

// chosenRunbooks are those with the ids, or all.
func (d *Deps) chosenRunbooks(ctx context.Context, ids []string) ([]*runbook.Runbook, error) {
	catalog, err := d.loadRunbooks(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(ids) == 0:
		return catalog.Books, nil
	}
	var books []*runbook.Runbook
	for _, id := range ids {
		book, err := catalog.Find(id)
		if err != nil {
			return nil, err
		}
		books = append(books, book)
	}
	return books, nil
}
