package commands

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/views"
)

const runSchema = "sbx.run/v1"

// launchOne launches one task and shows what became of it.
func launchOne(ctx context.Context, d *Deps, p *output.Printer, o *launchOptions, req launch.Request, schema string) error {
	log := &joblog{path: d.Path(o.joblog), warn: p.Warn}
	watch := d.newObserver(p, nil)
	if o.detach {
		launched, err := launch.Detached(ctx, d.Env, req, watch, o.joblog)
		if launched == nil {
			return err
		}
		if err != nil || launched.Task.State.Final() {
			return showTaskEnd(p, schema, launched.Task, d.Now(), err)
		}
		return output.ShowItem(p, output.ItemSpec[views.TaskRow]{
			Schema: schema, Columns: views.TaskItemColumns(), Line: func(r views.TaskRow) string { return r.ID },
		}, views.TaskRow{Task: launched.Task, Now: d.Now(), Alive: d.OwnerAlive(launched.Task.Owner)})
	}
	launched, err := launch.Launch(ctx, d.Env, req, watch, views.NewTaskReporter(p))
	return endLaunch(p, launched, d.Now(), schema, log, err)
}

// endLaunch logs and shows the task that this process ran.
func endLaunch(p *output.Printer, launched *launch.Launched, now time.Time, schema string, log *joblog, err error) error {
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
	verdict := launch.TaskVerdict(t, err)
	var errs []error
	if _, own := errors.AsType[launch.ProgramExit](verdict); verdict != nil && !own {
		errs = append(errs, verdict)
	}
	return output.ShowItemAs(p, output.ItemSpec[views.TaskRow]{
		Schema: schema, Columns: views.TaskItemColumns(), Aside: func(r views.TaskRow) []string { return r.ExitSummary() },
	}, views.TaskRow{Task: t, Now: now, Alive: sandbox.Unknown}, verdict, errs...)
}

// readRequest turns the flags into what is asked of a launch; every mistake is
// fault.KindUsage.
func (o *launchOptions) readRequest(ctx context.Context, d *Deps, p *output.Printer, command []string) (launch.Request, error) {
	req := launch.Request{}
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
	req = launch.Request{
		Config: c, Sandbox: box, Key: o.key, RetryFailed: o.retryFailed, Publish: o.publish, Push: o.push, Branch: o.branch, Base: o.base, Session: o.session, Description: o.description,
		KeepAlive: o.keep, RetryOn: o.classes, Fallback: o.fallback, Compared: o.compare, BudgetMB: o.budgetMB,
	}
	if o.flags.Changed("keep-for") {
		if req.KeepFor, err = sandbox.ParseDuration(o.keepFor); err != nil {
			return req, fault.Usage("--keep-for: %w", err)
		}
	}
	return req, nil
}

func newRunTask(d *Deps) *cobra.Command {
	cmd := &cobra.Command{
		Use: ops.RunnerVerb, Hidden: true, Short: "Run a task that `sbx run --detach` has launched", Args: noArgs,
		Long: "Run a task that `sbx run --detach` has launched; it is read from standard input.", Example: "sbx run --detach -- true",
	}
	return d.completeVerb(cmd, document{schema: runSchema, shape: output.ShapeItem, columns: output.Names(views.TaskItemColumns())},
		func(ctx context.Context, p *output.Printer, _ []string) error { return runTask(ctx, d, p) })
}

func runTask(ctx context.Context, d *Deps, p *output.Printer) error {
	var o ops.RunnerOrder
	if err := json.NewDecoder(io.LimitReader(d.Process.Stdin, 4<<20)).Decode(&o); err != nil || o.Task == "" {
		return fault.Usage("%s: no task on standard input", ops.RunnerVerb).WithHint("`sbx run --detach -- COMMAND` starts it")
	}
	if _, err := d.Config(); err != nil {
		return err
	}
	log := &joblog{path: d.Path(o.Joblog), warn: p.Warn}
	launched, err := launch.RunOrder(ctx, d.Env, o, d.newObserver(p, nil), views.NewTaskReporter(p))
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

// launchOptions are the flags of run, as typed.
type launchOptions struct {
	create createOptions
	flags  *pflag.FlagSet

	retryOn, fallback, compare        []string
	publish, push, base, key, session string
	branch                            string
	description                       string
	keep, detach, again, retryFailed  bool
	keepFor, file, budget, joblog     string
	parallel                          int

	classes  []sandbox.Class
	budgetMB int64
}

func (o *launchOptions) addFlags(f *pflag.FlagSet) {
	o.flags = f
	o.create.addFlags(f)
	f.String("attempts", "", "make at most `N` attempts; infrastructure failures do not count\n(default 3)")
	f.String("retry-delay", "", "wait `DURATION` before the second attempt, then twice as long\n(default 6s)")
	f.StringSliceVar(&o.retryOn, "retry-on", nil, "retry only after exits of these `CLASSES`: oom,killed_unknown")
	f.String("command-timeout", "", "limit of the program, `DURATION` (default 300s)")
	f.String("attempt-timeout", "", "limit of one attempt, `DURATION` (default 600s)")
	f.String("deadline", "", "limit of all attempts together, `DURATION` (default 35m)")
	f.String("inactivity", "", "stop it after `DURATION` without output or activity (default 60s)")
	f.StringVar(&o.publish, "publish", "", "on success, run the shell `LINE` on this host, unless it was stopped")
	f.StringVar(&o.push, "push", "", "on success, push its commits to `REMOTE=BRANCH`, unless it was stopped")
	f.StringVar(
		&o.branch, "branch", "",
		"first make the branch `NAME` (GitFlow: feature/x) at the remote of\n--push REMOTE (default origin); push the commits to it, or remove it",
	)
	f.StringVar(&o.base, "base", "", "publish the commits since `REF`; default: all of HEAD. With --branch:\nmake it at this branch or commit of the remote")
	f.StringVar(&o.description, "description", "", "set TASK_DESCRIPTION to `TEXT`; it is stored and shown")
	f.StringVar(&o.key, "key", "", "launch once: a second run with this `KEY` joins the first; one\nthat never ran does not count")
	f.StringSliceVar(&o.fallback, "fallback", nil, "after infrastructure failures continue at `PROVIDER` (repeatable)")
	f.StringSliceVar(&o.compare, "compare", nil, "run it at each of these `PROVIDERS` and compare")
	f.BoolVar(&o.keep, "keep-alive", false, "keep the sandbox of a completed task, for sbx resume")
	f.StringVar(&o.keepFor, "keep-for", "", "with --keep-alive: for this `DURATION` (default 1h)")
	f.StringVar(&o.session, "session", "", "the agent's session `FILE`: its growth counts as activity, and its\nmessages are counted")
	f.BoolVar(&o.detach, "detach", false, "print the task's id and continue in the background")
	f.StringVar(&o.file, "file", "", "launch the tasks of this YAML `FILE`")
	f.IntVar(&o.parallel, "parallel", defaultParallel, "with --file: run at most `N` at once")
	f.BoolVar(&o.again, "again", false, "with --file: also launch tasks that completed before")
	f.BoolVar(&o.retryFailed, "retry-failed", false, "with --file or --key: also launch what failed or timed out before")
	f.StringVar(&o.budget, "memory-budget", "", "limit of memory of all tasks together, `SIZE`: 8G")
	f.StringVar(&o.joblog, "joblog", "", "append a line per attempt to `FILE`")
	groupFlags(f, []flagGroup{
		{"The sandbox", []string{
			"name", "memory", "cpu", "disk", "pids", "ttl", "template", "snapshot", "image", "env", "env-file", "label", "task", "agent-type",
			"workdir", "require-hard-limit", "isolate",
		}},
		{"Attempts and time", []string{"attempts", "retry-delay", "retry-on", "command-timeout", "attempt-timeout", "deadline", "inactivity", "fallback"}},
		{"Publishing", []string{"publish", "push", "branch", "base"}},
		{"The task", []string{"key", "description", "session", "keep-alive", "keep-for", "detach", "joblog"}},
		{"Many tasks", []string{"file", "parallel", "again", "retry-failed", "memory-budget", "compare"}},
	})
}

const defaultParallel = 4

func (o *launchOptions) registerCompletions(d *Deps, cmd *cobra.Command) {
	completeFlag(cmd, "isolate", func() []string { return []string{"bwrap"} })
	completeFlag(cmd, "retry-on", retryWords)
	for _, flag := range []string{"fallback", "compare"} {
		completeFlag(cmd, flag, d.ConfiguredNames)
	}
}

// configOverrides are the flags that win over the configuration, by their names there.
func (o *launchOptions) configOverrides() map[string]string {
	set := map[string]string{}
	for _, name := range config.RunFlagNames() {
		if f := o.flags.Lookup(name); f != nil && f.Changed {
			set[name] = f.Value.String()
		}
	}
	return set
}

func retryWords() []string { return wordsOf(retryClasses()) }

// retryClasses are those that --retry-on takes: a success and a stop are never tried
// again.
func retryClasses() []sandbox.Class {
	return append(task.RetryOn(), sandbox.ClassAgentError, sandbox.ClassUsage, sandbox.ClassEnvironment, sandbox.ClassTimeout, sandbox.ClassKilledByUs)
}

// checkFlags refuses what contradicts itself, before anything is read or called.
func (o *launchOptions) checkFlags() error {
	if err := checkTexts(o.flags, "key", "push", "branch", "base", "session", "file", "joblog"); err != nil {
		return err
	}
	given := o.flags.Changed
	both := func(a, b, why string) error {
		if given(a) && given(b) {
			return fault.Usage("--%s and --%s exclude each other: %s", a, b, why)
		}
		return nil
	}
	needs := func(a, b string) error {
		if given(a) && !given(b) {
			return fault.Usage("--%s needs --%s", a, b)
		}
		return nil
	}
	needsHere := func(a, b string) error { // a task of the file may say b
		if given("file") {
			return nil
		}
		return needs(a, b)
	}
	for _, err := range []error{
		both("push", "publish", "a task is published once"), both("branch", "publish", "a branch is pushed to"),
		both("branch", "file", "each task has its own branch"), both("branch", "compare", "a task is published once"),
		both("file", "detach", "its tasks are watched here"),
		both("file", "compare", "one of them says what is run"), both("file", "key", "each task of the file has its own"),
		both("compare", "fallback", "each provider runs it by itself"), both("compare", "key", "a key launches one task"),
		both("compare", "detach", "what is compared is waited for"), both("compare", "push", "a task is published once"),
		both("compare", "publish", "a task is published once"), both("compare", "keep-alive", "what is compared is ended"),
		needsHere("keep-for", "keep-alive"), needs("parallel", "file"), needs("again", "file"),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case given("retry-failed") && !given("file") && !given("key"):
		return fault.Usage("--retry-failed needs --file or --key")
	case given("base") && !given("push") && !given("branch") && !given("publish") && !given("file"):
		return fault.Usage("--base needs --push, --branch or --publish")
	case given("task"):
		return fault.Usage("--task cannot be set: run creates the task's id").WithHint("use --key to name the task")
	case o.parallel < 1 || o.parallel > 256:
		return fault.Usage("--parallel: %d is not a number of tasks", o.parallel).WithHint("from 1 to 256")
	}
	if err := o.checkBranch(); err != nil {
		return err
	}
	return o.readListsAndSizes()
}

func (o *launchOptions) checkBranch() error {
	if !o.flags.Changed("branch") {
		return nil
	}
	return launch.CheckBranch(o.branch, o.push)
}

func (o *launchOptions) readListsAndSizes() error {
	for _, word := range o.retryOn {
		c := sandbox.Class(word)
		if !slices.Contains(retryClasses(), c) {
			return fault.Usage("--retry-on: %q is not a class of exits that can be retried", word).WithHint("%s", fault.Meant(word, retryWords()))
		}
		o.classes = append(o.classes, c)
	}
	for i, name := range o.compare {
		if slices.Contains(o.compare[:i], name) {
			return fault.Usage("--compare names %q twice", name)
		}
	}
	if len(o.compare) == 1 {
		return fault.Usage("--compare needs two providers or more")
	}
	if o.flags.Changed("memory-budget") {
		n, err := sandbox.ParseSize(o.budget)
		if err != nil {
			return fault.Usage("--memory-budget: %w", err)
		}
		if o.budgetMB = n / sandbox.MiB; o.budgetMB < 1 {
			return fault.Usage("--memory-budget: %s is too small for a task", o.budget).WithHint("use at least 1M")
		}
	}
	return nil
}
