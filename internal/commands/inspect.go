package commands

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sbx/internal/ops"
	"sbx/internal/ops/look"
	"sbx/internal/output"
	"sbx/internal/views"
)

func newInspect(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inspect REF...",
		GroupID: groupLook,
		Short:   "Show a sandbox: verdict, next step, and all facts",
		Long: "Show a sandbox on one screen: the verdict, the command to type next, the causes with\n" +
			"their evidence and why not the next one, warnings, its command, limits, usage, health\n" +
			"and last output; for an ended one its exit and cause. -v adds the record, the timeline,\n" +
			"every figure with its source, and every question with its answer. `diagnose REF` prints\n" +
			"the same page, and its exit code tells whether something is wrong. -o json has all but\n" +
			"the questions, which are in the document of diagnose.\n\n" +
			"For a sandbox that is gone it shows the records (exit 5): who terminated it, when,\n" +
			"in which run, and whether that was verified.\n\n" +
			"It is read-only. What the provider does not report is null, and named as such;\n" +
			"a part that could not be read is an error, and the rest is shown (exit 3).\n\n" +
			"Several REFs are shown one after the other, as json one document each; - reads them\n" +
			"from standard input.",
		Example:           "sbx inspect local/k3v9x2mq7a\nsbx inspect k3v9 -o json\nsbx ls --stuck -o name | sbx inspect -",
		Args:              usageArgs(atLeastOneArg("REF"), "`sbx ls -o name` lists the references"),
		ValidArgsFunction: d.completeRefs(true, offerAll),
	}
	return d.completeVerb(cmd, document{schema: inspectSchema, shape: output.ShapeItem, columns: output.Names(views.InspectColumns())},
		func(ctx context.Context, p *output.Printer, args []string) error { return runInspect(ctx, d, p, args) })
}

const inspectSchema = "sbx.inspect/v1"

func runInspect(ctx context.Context, d *Deps, p *output.Printer, args []string) error {
	words, err := d.readRefWords(ctx, args)
	if err != nil {
		return err
	}
	if len(words) == 1 {
		return inspectOne(ctx, d, p, words[0], false)
	}
	var errs []error
	for i, word := range words {
		if i > 0 && p.Format.Human() {
			if err := p.Line(""); err != nil {
				return err
			}
		}
		err := inspectOne(ctx, d, p, word, false)
		if err != nil && !alreadyShown(err) {
			err = p.Failed(inspectSchema, output.ShapeItem, err)
		}
		if errors.Is(err, output.ErrClosed) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return output.ConcludeAll(errs, len(errs) < len(words))
}

// inspectOne shows one sandbox, on the dashboard with its timeline.
func inspectOne(ctx context.Context, d *Deps, p *output.Printer, word string, timeline bool) error {
	r, err := look.Diagnose(ctx, d.Env, look.DiagnoseRequest{Word: word, Sandbox: true}, d.newObserver(p, nil))
	if r == nil {
		return err
	}
	r.Errors = ops.CauseOnce(ctx, r.Errors) // what was seen until an interrupt is shown
	return views.ShowInspection(p, inspectSchema, r, d.Process.Name(), timeline)
}
