package commands

import (
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/task"
	"sbx/internal/views"
)

// detached hands a task to a process of its own, and prints its id.
func (l *launching) detached(ctx context.Context, ledger task.Ledger, t task.Task, mine bool) error {
	if mine {
		from := t.Owner
		runner, err := l.d.StartRunner(ctx, ops.RunnerOrder{Task: t.ID, From: from, Env: l.box.Env, Push: l.o.push, BudgetMB: l.o.budgetMB, Joblog: l.o.joblog})
		if err != nil {
			return err
		}
		// From here on nobody takes it for one that a dead process has left.
		if t, err = ledger.Change(ctx, t.ID, func(n *task.Task) error { return n.Hand(from, runner) }); err != nil {
			return err
		}
	}
	return output.ShowItem(l.p, output.ItemSpec[views.TaskRow]{
		Schema: l.schema, Columns: views.TaskItem(), Line: func(r views.TaskRow) string { return r.ID },
	}, views.TaskRow{Task: t, Now: l.d.Now(), Alive: l.d.OwnerAlive(t.Owner)})
}

// newRunTask is the verb that a background runner is.
func newRunTask(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use: ops.RunnerVerb, Hidden: true, Short: "Run a task that `sbx run --detach` has launched", Args: noArgs,
		Long: "Run a task that `sbx run --detach` has launched; the order comes on standard input.", Example: "sbx run --detach -- true",
	}
	return d.verb(cmd, document{schema: runSchema, shape: output.ShapeItem, columns: output.Names(views.TaskItem())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return runTask(ctx, d, p) })
}

func runTask(ctx context.Context, d *Deps, p *output.Printer) error {
	var o ops.RunnerOrder
	if err := json.NewDecoder(io.LimitReader(d.Process.Stdin, 4<<20)).Decode(&o); err != nil || o.Task == "" {
		return fault.Usage("%s: there is no order on standard input", ops.RunnerVerb).WithHint("`sbx run --detach -- COMMAND` starts it")
	}
	c, err := d.Config()
	if err != nil {
		return err
	}
	l := &launching{d: d, p: p, o: &launchOptions{joblog: o.Joblog, budgetMB: o.BudgetMB}, config: c, schema: runSchema}
	var t task.Task
	err = d.ReadTasks(func(ledger task.Ledger) (err error) {
		t, err = ledger.Read(ctx, o.Task)
		return err
	})
	if err != nil {
		return err
	}
	if o.Push != "" {
		if l.secret, err = d.PushTarget(ctx, o.Push); err != nil {
			return err
		}
	}
	return l.with(ctx, t.Spec, func(ctx context.Context, options task.Options) error {
		t, err := options.Ledger.Change(ctx, o.Task, func(n *task.Task) error { return n.Adopt(options.Owner, n.Owner == o.From || n.Owner == options.Owner) })
		if err != nil {
			return err
		}
		ear := views.NewTaskReporter(p)
		options.Ear = ear
		now, err := d.RunTask(ctx, p, options, t, o.Env)
		ear.Close()
		l.joblog(now, 0)
		return l.finished(now, err)
	})
}
