package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/output"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
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
	return d.verb(cmd, document{schema: runSchema, shape: output.ShapeItem, columns: launchColumns(d)},
		func(ctx context.Context, p *output.Printer, args []string) error {
			return launch(ctx, d, p, args, &o)
		})
}

// launchColumns are those of a task, and behind them those that only --compare has.
func launchColumns(d *Deps) []string {
	return eachOnce(slices.Concat(output.Names(taskItem()), output.Names((&launching{d: d}).compareColumns())))
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
	l, err := newLaunch(ctx, d, p, o, command)
	if err != nil {
		return err
	}
	check := output.CheckColumns(taskItem(), p.Columns)
	if len(o.compare) > 0 {
		check = output.CheckColumns(l.compareColumns(), p.Columns)
	}
	if err := cmp.Or(check, l.openJoblog()); err != nil {
		return err
	}
	switch {
	case o.file != "":
		return l.batch(ctx)
	case len(o.compare) > 0:
		return l.compare(ctx)
	}
	spec, err := l.spec(ctx)
	if err != nil {
		return err
	}
	return l.with(ctx, spec, func(ctx context.Context, options task.Options) error {
		return l.one(ctx, options, spec, "")
	})
}

// launching is one `sbx run`.
type launching struct {
	d      *Deps
	p      *output.Printer
	o      *launchOptions
	config *config.Config
	schema string
	box    sandbox.Spec   // what the flags of create say, with the values of the environment
	secret publish.Target // with its credentials
	kept   sandbox.Ref    // what a resume goes on in
	full   sandbox.Spec   // box with the sizes that the configuration gives

	said    map[string]bool           // what was said once for all tasks
	configs map[string]*config.Config // by the flags that make a difference
}

func newLaunch(ctx context.Context, d *Deps, p *output.Printer, o *launchOptions, command []string) (*launching, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	box, err := o.create.read(ctx, d, command)
	if err != nil {
		return nil, err
	}
	hide(p, box.Env)
	c, err := d.Config()
	if err != nil {
		return nil, err
	}
	return &launching{d: d, p: p, o: o, config: c, schema: runSchema, box: box}, nil
}

// with opens what a task of this spec needs, takes over what dead processes left,
// and goes on.
func (l *launching) with(ctx context.Context, spec task.Spec, do func(context.Context, task.Options) error) error {
	places := append([]string{spec.Provider}, spec.Fallback...)
	f, err := l.d.Only(ctx, places...)
	if err != nil {
		return err
	}
	if spec.Sandbox.ID == "" && len(l.full.Command) > 0 { // else nothing is made, or it was vetted before
		if err := f.Vet(spec.Provider, l.full); err != nil {
			return err
		}
	}
	full := l.refusedByLimit(ctx, f, spec)
	return l.d.withTasks(ctx, TaskParts{Fleet: f, Secret: l.secret, Notice: l.p.Note, BudgetMB: l.o.budgetMB}, func(_ store.Store, options task.Options) error {
		l.d.sweepTasks(ctx, l.p, options)
		if full != nil && !l.joins(ctx, options.Ledger) {
			return full
		}
		return do(ctx, options)
	})
}

// refusedByLimit says why no sandbox may be made for a task now (ACCEPTANCE R111);
// nil where one may, none is made, or they cannot be counted: then the create says why.
func (l *launching) refusedByLimit(ctx context.Context, f *fleet.Fleet, spec task.Spec) error {
	if spec.Sandbox.ID != "" {
		return nil
	}
	if err := f.Capacity(ctx, spec.Provider); fault.KindOf(err) == fault.KindRefused {
		return err
	}
	return nil
}

// joins says that the key belongs to a task that is there, so that none is made.
func (l *launching) joins(ctx context.Context, ledger task.Ledger) bool {
	if l.o.key == "" {
		return false
	}
	tasks, err := ledger.List(ctx, store.TaskQuery{})
	return err == nil && slices.ContainsFunc(tasks, func(t task.Task) bool { return t.Key == l.o.key })
}

// one launches one task, or joins the one of the same key.
func (l *launching) one(ctx context.Context, options task.Options, spec task.Spec, from string) error {
	fresh := task.New(task.NewID(), l.o.key, spec, options.Owner, l.d.now())
	fresh.ResumedFrom = from
	t, added, err := options.Ledger.Add(ctx, fresh)
	if err != nil {
		return err
	}
	mine := added
	if !added {
		if t.State.Over() {
			l.p.Note("task " + t.ID + " had ended before; another --key launches it anew")
		}
		if t, mine, err = l.join(ctx, options, t, l.o.detach); err != nil || t.State.Over() {
			return l.finished(t, err)
		}
	}
	if l.o.detach {
		return l.detached(ctx, options.Ledger, t, mine)
	}
	ear := newEar(l.p)
	options.Ear = ear
	now, err := l.d.bring(ctx, l.p, options, t, l.box.Env)
	ear.close()
	l.joblog(now, 0)
	return l.finished(now, errors.Join(err, ranOut(ctx, now)))
}

// ranOut is the end of the verb's own time, which stops a task as the operator would.
func ranOut(ctx context.Context, t task.Task) error {
	if cause := context.Cause(ctx); t.State == task.Stopped && fault.KindOf(cause) == fault.KindTimeout {
		return cause
	}
	return nil
}

// join waits for a task of the same key that somebody else runs, or takes it over
// from a dead process: then it is mine to go on with. With leave it is not waited for.
func (l *launching) join(ctx context.Context, options task.Options, t task.Task, leave bool) (now task.Task, mine bool, err error) {
	l.p.Note("the key " + t.Key + " belongs to task " + t.ID + ": no new one is launched")
	told := task.Owner{}
	for !t.State.Over() {
		now, err := options.Ledger.Change(ctx, t.ID, func(n *task.Task) error {
			dead := options.Alive != nil && options.Alive(n.Owner) == sandbox.False
			return n.Adopt(options.Owner, dead)
		})
		switch {
		case err == nil:
			l.p.Note("its process is gone: this one goes on with it")
			return now, true, nil
		case !errors.Is(err, task.ErrHeld) && !errors.Is(err, task.ErrOver):
			return t, false, err
		case leave, errors.Is(err, task.ErrOver):
			return now, false, nil
		}
		if told != now.Owner {
			told = now.Owner
			l.p.Note(fmt.Sprintf("task %s is held by %s (pid %d on %s) until %s, and by its renewals: this one waits for its end, and takes over when they stay away",
				now.ID, now.Owner.Who, now.Owner.PID, now.Owner.Host, now.LeaseUntil.UTC().Format(time.RFC3339)))
		}
		wait, stop := context.WithTimeout(ctx, task.LeaseFor)
		t, err = options.Ledger.Await(wait, now)
		stop()
		if err != nil && (ctx.Err() != nil || !fault.Interrupted(err)) {
			return t, false, err
		}
	}
	return t, false, nil
}

// bring runs a task in this process. The first signal stops it, fenced and verified;
// the second leaves what is still to be ended to whoever comes next.
func (d *Deps) bring(ctx context.Context, p *output.Printer, options task.Options, t task.Task, env []string) (task.Task, error) {
	life, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer d.hearWishes(ctx, func() { p.Warn("stopping task " + t.ID + "; once more leaves it to the next sbx") }, leave)()
	now, err := d.controlled(ctx, p, options.Ledger, t, func() (task.Task, error) {
		return task.NewRunner(options, env, ctx.Done()).Run(life, t)
	})
	if ctx.Err() != nil && err != nil && !now.State.Over() {
		now = lastWord(ctx, p, options, now)
	}
	return now, err
}

// lastWord closes the gate of a task that is left in the middle, where the stop was
// not written yet: nobody who goes on with it shall publish what the operator has
// given up.
func lastWord(ctx context.Context, p *output.Printer, options task.Options, t task.Task) task.Task {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	now, err := options.Ledger.Change(ctx, t.ID, func(n *task.Task) error { return n.Stop(options.Owner.Who) })
	switch {
	case err != nil && !errors.Is(err, task.ErrOver):
		p.Warn("task " + t.ID + " is left as it is: the next sbx goes on with it, and `sbx stop " + t.ID + "` stops it")
		return t
	case !now.State.Over():
		p.Warn("task " + t.ID + " will not publish; what was made for it is left to the next sbx, and to `sbx stop " + t.ID + "`")
	}
	return now
}

// hearWishes hears the operator's two wishes to be gone, until the func that it returns
// is called: the first has ended ctx and is answered, the second leaves everything to
// the next sbx.
func (d *Deps) hearWishes(ctx context.Context, first func(), leave context.CancelCauseFunc) (over func()) {
	var signals <-chan os.Signal
	done := func() {}
	if d.Process.Signals != nil {
		signals, done = d.Process.Signals()
	}
	end := make(chan struct{})
	go func() {
		defer done()
		select {
		case <-ctx.Done():
			first()
		case <-end:
			return
		}
		wishes := 2 // the first is heard here, too
		if fault.KindOf(context.Cause(ctx)) == fault.KindTimeout {
			wishes = 1 // nobody has wished for it yet
		}
		for range wishes {
			select {
			case <-signals:
			case <-end:
				return
			}
		}
		leave(context.Cause(ctx))
	}()
	return func() { close(end) }
}

// finished shows the task and turns its end into an exit code.
func (l *launching) finished(t task.Task, err error) error {
	row := taskRow{Task: t, now: l.d.now(), alive: sandbox.Unknown}
	verdict := taskVerdict(t, err)
	var errs []error
	if _, own := errors.AsType[ProgramExit](verdict); verdict != nil && !own {
		errs = append(errs, verdict)
	}
	return output.ShowItemAs(l.p, output.ItemSpec[taskRow]{
		Schema: l.schema, Columns: taskItem(), Aside: func(r taskRow) []string { return r.farewell() },
	}, row, verdict, errs...)
}

// taskVerdict is the error that a task's end is for the process (CLI.md, exit codes).
func taskVerdict(t task.Task, err error) error {
	if err != nil && (!errors.Is(err, task.ErrUnverified) || t.Verdict == task.Completed || t.Verdict == "") {
		return err
	}
	over := t
	if !over.State.Over() {
		over.State = t.Verdict
	}
	op := "task " + t.ID
	switch code := over.ExitCode(); {
	case code == 0:
		return nil
	case over.State == task.TimedOut:
		return fault.New(fault.KindTimeout, "its %s limit was reached", t.Reason).At("", op).WithHint("`sbx tasks show %s` has the evidence", t.ID)
	case over.State == task.Stopped:
		return fault.New(fault.KindCanceled, "stopped by %s", t.StopBy).At("", op)
	case code == task.CodeNotRun:
		return fault.New(fault.KindLauncher, "%s", notRunWords(t)).At("", op).WithHint("`sbx tasks show %s` has the evidence", t.ID)
	}
	if a := over.Last(); a != nil && a.Fault != "" { // sbx says it: no program was there to
		return fault.New(fault.Kind(a.Fault), "%s", notRunWords(t)).At("", op)
	}
	return ProgramExit{Code: over.ExitCode()}
}

func notRunWords(t task.Task) string {
	why := t.Refused
	if a := t.Last(); a != nil && a.Exit != nil {
		for _, e := range a.Exit.Evidence {
			if e.What == "create" {
				return e.Value
			}
		}
	}
	if why == "" {
		why = "it did not run"
	}
	return why
}

// farewell is what the operator of a foreground run reads at its end.
func (r taskRow) farewell() []string {
	lines := []string{"task " + r.ID + ": " + told(string(r.State), r.more())}
	if a := r.Last(); a != nil && r.State != task.Completed {
		lines = append(lines, attemptLine(*a))
		lines = append(lines, r.failure()...)
	}
	if r.Spec.Publishes() {
		lines = append(lines, "publish: "+r.publishWords())
	}
	if r.Kept != nil {
		lines = append(lines, "kept: "+r.Kept.Ref.String()+" for "+seconds(r.Kept.ExpiresAt.Sub(r.now).Round(time.Second)))
	}
	if r.State != task.Completed || r.Kept != nil {
		for _, next := range r.next() {
			lines = append(lines, "next: "+next)
		}
	}
	return lines
}

// TaskParts are what tasks are joined with.
type TaskParts struct {
	Fleet    *fleet.Fleet
	Store    store.Store
	Secret   publish.Target // the push target with its credentials; zero = none
	BudgetMB int64          // what all tasks of a budget may hold together; 0 = no bound
	Notice   func(text string)
	// Protected says why the operator keeps a sandbox; withTasks knows it.
	Protected func(sandbox.Sandbox) string
}
