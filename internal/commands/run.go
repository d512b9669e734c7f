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
		Short:   "Launch a task: run, retry, publish at most once, clean up",
		Long: "Launch a task: run a command in its own sandbox, retry after infrastructure\n" +
			"failures, publish the result at most once, and terminate every sandbox of the task.\n\n" +
			"Its exit code is that of the program. 124: a time limit ended it. 125: sbx could\n" +
			"not run or publish it. 126, 127: not executable, not found. 130: stopped.\n" +
			"137: killed. 8: completed, but a sandbox is not verified gone.\n" +
			"Ctrl-C stops the task; a second Ctrl-C leaves the cleanup to the next sbx. With\n" +
			"--push, sbx fetches the commits since --base from the work directory and pushes them\n" +
			"from this host; a stop closes the fence in the same step (docs/TASKS.md). With\n" +
			"--branch it makes the branch first, names it in BRANCH_NAME, and removes it again\n" +
			"when nothing was pushed to it.",
		Example: "sbx run -- true\n" +
			"sbx run --memory 512M --attempts 3 --inactivity 60s -- sh -c 'echo hello'\n" +
			"sbx run --key nightly-7 --deadline 20m --joblog jobs.tsv -- true",
		Args:              launchArgs(d, &o),
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
	return eachOnce(slices.Concat(output.Names(views.TaskItemColumns()), output.Names(views.CompareColumns(time.Time{}))))
}

func launchArgs(d *Deps, o *launchOptions) cobra.PositionalArgs {
	one := d.afterDash("", "sbx run --memory 512M -- sh -c 'echo hello'")
	return func(cmd *cobra.Command, args []string) error {
		if o.file != "" {
			return usageArgs(noArgs, "each task of the file has its own command: leave --file or the command out")(cmd, args)
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
	check := output.CheckColumns(views.TaskItemColumns(), p.Columns)
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
