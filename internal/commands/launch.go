package commands

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/views"
)

const runSchema = "sbx.run/v1"

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
	o.add(cmd.Flags())
	o.complete(d, cmd)
	return d.verb(cmd, document{schema: runSchema, shape: output.ShapeItem, columns: launchColumns()},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return launch(ctx, d, p, args, &o)
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

func launch(ctx context.Context, d *Deps, p *output.Printer, command []string, o *launchOptions) error {
	d.Globals.Settings = o.settings()
	req, err := o.request(ctx, d, p, command)
	if err != nil {
		return err
	}
	check := output.CheckColumns(views.TaskItem(), p.Columns)
	if len(o.compare) > 0 {
		check = output.CheckColumns(views.CompareColumns(d.Now()), p.Columns)
	}
	log := &joblog{path: d.Path(o.joblog), warn: p.Warn}
	if err := cmp.Or(check, log.open()); err != nil {
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

// launchOne launches one task and shows what became of it.
func launchOne(ctx context.Context, d *Deps, p *output.Printer, o *launchOptions, req ops.LaunchRequest, schema string) error {
	log := &joblog{path: d.Path(o.joblog), warn: p.Warn}
	watch := d.observe(p, nil)
	if o.detach {
		launched, err := ops.LaunchDetached(ctx, d.Env, req, watch, o.joblog)
		if launched == nil {
			return err
		}
		if err != nil || launched.Task.State.Over() {
			return showTaskEnd(p, schema, launched.Task, d.Now(), err)
		}
		return output.ShowItem(p, output.ItemSpec[views.TaskRow]{
			Schema: schema, Columns: views.TaskItem(), Line: func(r views.TaskRow) string { return r.ID },
		}, views.TaskRow{Task: launched.Task, Now: d.Now(), Alive: d.OwnerAlive(launched.Task.Owner)})
	}
	launched, err := ops.Launch(ctx, d.Env, req, watch, views.NewTaskReporter(p))
	return endLaunch(p, launched, d.Now(), schema, log, err)
}

// endLaunch logs and shows the task that this process ran.
func endLaunch(p *output.Printer, launched *ops.Launched, now time.Time, schema string, log *joblog, err error) error {
	if launched == nil {
		return err
	}
	if launched.RanHere {
		log.add(launched.Task, 0)
	}
	return showTaskEnd(p, schema, launched.Task, now, err)
}

// showTaskEnd shows a task and turns its end into an exit code.
func showTaskEnd(p *output.Printer, schema string, t task.Task, now time.Time, err error) error {
	verdict := ops.TaskVerdict(t, err)
	var errs []error
	if _, own := errors.AsType[ops.ProgramExit](verdict); verdict != nil && !own {
		errs = append(errs, verdict)
	}
	return output.ShowItemAs(p, output.ItemSpec[views.TaskRow]{
		Schema: schema, Columns: views.TaskItem(), Aside: func(r views.TaskRow) []string { return r.ExitSummary() },
	}, views.TaskRow{Task: t, Now: now, Alive: sandbox.Unknown}, verdict, errs...)
}

// request turns the flags into what is asked of a launch; every mistake is
// fault.KindUsage.
func (o *launchOptions) request(ctx context.Context, d *Deps, p *output.Printer, command []string) (ops.LaunchRequest, error) {
	req := ops.LaunchRequest{}
	if err := o.check(); err != nil {
		return req, err
	}
	box, err := o.create.read(ctx, d, command)
	if err != nil {
		return req, err
	}
	hide(p, box.Env)
	c, err := d.Config()
	if err != nil {
		return req, err
	}
	req = ops.LaunchRequest{
		Config: c, Sandbox: box, Key: o.key, Publish: o.publish, Push: o.push, Base: o.base, Session: o.session, Description: o.description,
		KeepAlive: o.keep, RetryOn: o.classes, Fallback: o.fallback, Compared: o.compare, BudgetMB: o.budgetMB,
	}
	if o.flags.Changed("keep-for") {
		if req.KeepFor, err = sandbox.ParseDuration(o.keepFor); err != nil {
			return req, fault.Usage("--keep-for: %w", err)
		}
	}
	return req, nil
}
