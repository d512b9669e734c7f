package commands

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/output"
	"sbx/internal/views"
)

func newRun(d *Deps) *cobra.Command {
	o := launchOptions{create: createOptions{}}
	cmd := &cobra.Command{
		Use:     "run [flags] -- COMMAND...",
		GroupID: groupAct,
		Short:   "Launch a task: run, retry, publish, and never after a stop",
		Long: "Launch a task: run a command in a sandbox of its own, try again what was an\n" +
			"accident, publish what it made, and end every sandbox that was made for it.\n\n" +
			"Its exit code is that of the program. 124: a time limit ended it. 125: sbx could\n" +
			"not run or not publish it. 126, 127: not executable, not found. 130: stopped.\n" +
			"137: killed. 8: it completed, and some sandbox was not seen to be gone.\n" +
			"Ctrl-C stops the task; a second one leaves it to the next sbx. With --push the\n" +
			"commits since --base are pulled out of the work directory and pushed from here,\n" +
			"in one step with a fence that a stop can close (docs/PUBLISHING.md).",
		Example: "sbx run -- true\n" +
			"sbx run --memory 512M --attempts 3 --inactivity 60s -- sh -c 'echo hello'\n" +
			"sbx run --key nightly-7 --deadline 20m --joblog jobs.tsv -- true",
		Args:              launchArgs(&o),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.addFlags(cmd.Flags())
	o.registerCompletions(d, cmd)
	return d.completeVerb(cmd, document{schema: runSchema, shape: output.ShapeItem, columns: launchColumns()},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return launchTasks(ctx, d, p, args, &o)
		})
}

// launchColumns are those of a task, and behind them those that only --compare has. Names
// need no clock.
func launchColumns() []string {
	return eachOnce(slices.Concat(output.Names(views.TaskItem()), output.Names(views.CompareColumns(time.Time{}))))
}

func launchArgs(o *launchOptions) cobra.PositionalArgs {
	one := afterDash(0, "sbx run --memory 512M -- sh -c 'echo hello'")
	return func(cmd *cobra.Command, args []string) error {
		if o.file != "" {
			return noArgs(cmd, args)
		}
		return one(cmd, args)
	}
}

func launchTasks(ctx context.Context, d *Deps, p *output.Printer, command []string, o *launchOptions) error {
	d.Globals.Settings = o.configOverrides()
	req, err := o.readRequest(ctx, d, p, command)
	if err != nil {
		return err
	}
	check := output.CheckColumns(views.TaskItem(), p.Columns)
	if len(o.compare) > 0 {
		check = output.CheckColumns(views.CompareColumns(d.Now()), p.Columns)
	}
	log := &joblog{path: d.Path(o.joblog), warn: p.Warn}
	if err := cmp.Or(check, log.openFile()); err != nil {
		return err
	}
	switch {
	case o.file != "":
		return launchBatch(ctx, d, p, o, log)
	case len(o.compare) > 0:
		return compareProviders(ctx, d, p, o, req, log)
	}
	return launchOne(ctx, d, p, o, req, runSchema)
}
