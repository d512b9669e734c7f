package commands

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/views"
)

const runSchema = "sbx.run/v1"

// launchOne launches one task and shows what became of it.
func launchOne(ctx context.Context, d *Deps, p *output.Printer, o *launchOptions, req ops.LaunchRequest, schema string) error {
	log := &joblog{path: d.Path(o.joblog), warn: p.Warn}
	watch := d.newObserver(p, nil)
	if o.detach {
		launched, err := ops.LaunchDetached(ctx, d.Env, req, watch, o.joblog)
		if launched == nil {
			return err
		}
		if err != nil || launched.Task.State.Final() {
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
		log.addTask(launched.Task, 0)
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

// readRequest turns the flags into what is asked of a launch; every mistake is
// fault.KindUsage.
func (o *launchOptions) readRequest(ctx context.Context, d *Deps, p *output.Printer, command []string) (ops.LaunchRequest, error) {
	req := ops.LaunchRequest{}
	if err := o.checkFlags(); err != nil {
		return req, err
	}
	box, err := o.create.readSpec(ctx, d, command)
	if err != nil {
		return req, err
	}
	hideValues(p, box.Env)
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

// newRunTask is the verb that a background runner is.
func newRunTask(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use: ops.RunnerVerb, Hidden: true, Short: "Run a task that `sbx run --detach` has launched", Args: noArgs,
		Long: "Run a task that `sbx run --detach` has launched; the order comes on standard input.", Example: "sbx run --detach -- true",
	}
	return d.completeVerb(cmd, document{schema: runSchema, shape: output.ShapeItem, columns: output.Names(views.TaskItem())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return runTask(ctx, d, p) })
}

func runTask(ctx context.Context, d *Deps, p *output.Printer) error {
	var o ops.RunnerOrder
	if err := json.NewDecoder(io.LimitReader(d.Process.Stdin, 4<<20)).Decode(&o); err != nil || o.Task == "" {
		return fault.Usage("%s: there is no order on standard input", ops.RunnerVerb).WithHint("`sbx run --detach -- COMMAND` starts it")
	}
	if _, err := d.Config(); err != nil {
		return err
	}
	log := &joblog{path: d.Path(o.Joblog), warn: p.Warn}
	launched, err := ops.RunOrder(ctx, d.Env, o, d.newObserver(p, nil), views.NewTaskReporter(p))
	return endLaunch(p, launched, d.Now(), runSchema, log, err)
}

// joblog is the file of --joblog, with a line for each attempt.
type joblog struct {
	path string // "" = there is none
	warn func(text string)
}

// openFile refuses a file that cannot be written, before hours of work are.
func (l *joblog) openFile() error {
	if l.path == "" {
		return nil
	}
	f, err := hostfile.Append(l.path, modeJoblog)
	if err != nil {
		return fault.Usage("--joblog: %w", err).WithHint("name a file that can be written")
	}
	return f.Close()
}

// modeJoblog lets others read: it is a log.
const modeJoblog = 0o644

// addTask adds a line for each attempt of a task. Its Seq is the task's place in a file;
// at none it is the attempt's number. That it cannot be written changes nothing of
// what the task came to.
func (l *joblog) addTask(t task.Task, seq int) {
	if l.path == "" {
		return
	}
	if err := l.addLines(t, seq); err != nil {
		l.warn("--joblog: the lines of task " + t.ID + " could not be added: " + err.Error())
	}
}

func (l *joblog) addLines(t task.Task, seq int) error {
	f, err := hostfile.Append(l.path, modeJoblog)
	if err != nil {
		return err
	}
	text := views.JoblogLines(t, seq)
	if info, err := f.Stat(); err == nil && info.Size() == 0 {
		text = views.JoblogHead + text
	}
	err = f.Add(text) // one write: lines of several processes do not mix
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
