package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/views"
)

// launchBatch launches the tasks of --file, and shows the outcomes as they come: on stderr
// for people, whose stdout has the programs' output, else as a document.
func launchBatch(ctx context.Context, d *Deps, p *output.Printer, o *launchOptions, log *joblog) error {
	req := launch.BatchRequest{Parallel: o.parallel, Again: o.again, RetryFailed: o.retryFailed, BudgetMB: o.budgetMB}
	if err := newBatchReader(d, p, o).readFile(ctx, &req); err != nil {
		return failedAsList(p, err)
	}
	req.Show = taskReporters(p, req.Jobs, false, o.parallel > 1)
	list, err := output.NewList(p, output.ListSpec[launch.BatchOutcome]{
		Schema: runSchema, Columns: views.OutcomeColumns(d.Now()), Aside: func(b launch.BatchOutcome) string { return views.OutcomeAside(b, d.Now()) },
	})
	if err != nil {
		return err
	}
	result, err := launch.Batch(ctx, d.Env, req, d.newObserver(p, func(item any) {
		if b, ok := item.(launch.BatchOutcome); ok {
			logOutcome(log, b)
			addOutcome(list, b)
		}
	}))
	if err != nil {
		return failedAsList(p, err)
	}
	t := result.Tally
	list.Set(views.RunKeys{Tasks: &t.Jobs, Completed: &t.Completed, NotLaunched: new(t.Jobs - t.Ended + t.Blocked)})
	list.Remark(views.BatchSummary(result.Tally))
	if ctx.Err() != nil || result.Tally.Ended < result.Tally.Jobs {
		list.Fail(result.Verdict)
	}
	return list.CloseAs(result.Verdict)
}

// compareProviders runs the same task at several providers at once, and shows what
// differs. Nothing is tried again unless --attempts asks for it: a difference is what is
// looked for.
func compareProviders(ctx context.Context, d *Deps, p *output.Printer, o *launchOptions, req launch.Request, log *joblog) error {
	if !o.flags.Changed("attempts") {
		if err := o.flags.Set("attempts", "1"); err != nil {
			return err
		}
	}
	batch := launch.BatchRequest{Parallel: len(o.compare), Fresh: true, BudgetMB: o.budgetMB}
	reader := newBatchReader(d, p, o)
	for _, name := range o.compare {
		job, err := reader.comparedJob(ctx, req, name)
		if err != nil {
			return failedAsList(p, err)
		}
		batch.Jobs = append(batch.Jobs, job)
		batch.Jobs[len(batch.Jobs)-1].Seq = len(batch.Jobs)
	}
	batch.Show = taskReporters(p, batch.Jobs, true, true)
	list, err := output.NewList(p, output.ListSpec[launch.BatchOutcome]{Schema: runSchema, Columns: views.CompareColumns(d.Now())})
	if err != nil {
		return err
	}
	var all []launch.BatchOutcome
	result, err := launch.Batch(ctx, d.Env, batch, d.newObserver(p, func(item any) {
		if b, ok := item.(launch.BatchOutcome); ok {
			logOutcome(log, b)
			all = append(all, b)
		}
	}))
	if err != nil {
		return failedAsList(p, err)
	}
	for _, b := range views.InOrder(all) { // each provider has a row, and all rows make the table
		if _, own := errors.AsType[launch.ProgramExit](b.Verdict); b.Verdict == nil || own {
			_ = list.Add(b) // Close gives the error of stdout
			continue
		}
		_ = list.AddFailed(b, b.Verdict) // Close gives the error of stdout
	}
	difference := views.CompareDifference(all, len(batch.Jobs))
	list.Set(views.RunKeys{Difference: &difference})
	list.Remark(difference)
	return list.CloseAs(result.Verdict)
}

func (b *batchReader) comparedJob(ctx context.Context, req launch.Request, provider string) (launch.BatchJob, error) {
	var err error
	if req.Config, err = b.configOf(ctx, provider, b.typed); err != nil {
		return launch.BatchJob{}, err
	}
	prepared, err := req.Prepare(ctx, b.d.Env, b.watch)
	return launch.BatchJob{PreparedTask: prepared, Label: provider}, err
}

// failedAsList shows an error that came before any item as a list without items.
func failedAsList(p *output.Printer, err error) error {
	if alreadyShown(err) {
		return err
	}
	return p.Failed(runSchema, output.ShapeList, err)
}

// logOutcome writes what this run did of a job to the joblog.
func logOutcome(log *joblog, o launch.BatchOutcome) {
	if !o.Before && o.Task.ID != "" {
		log.addTask(o.Task, o.Seq)
	}
}

// addOutcome adds an outcome to the document. A program's own exit is no error of sbx.
func addOutcome(list *output.List[launch.BatchOutcome], o launch.BatchOutcome) {
	var err error
	switch _, own := errors.AsType[launch.ProgramExit](o.Verdict); {
	case o.Verdict == nil, own:
		err = list.Add(o)
	case o.Task.ID == "":
		list.Fail(fault.Placed(o.Verdict, "", o.Label))
		return
	default:
		err = list.AddFailed(o, o.Verdict)
	}
	if err == nil {
		_ = list.Flush() // a closed stdout is reported at the end
	}
}

// taskReporters makes the reporter of each task of a batch: where several run at once each line
// names its task. With tabled, stdout is for a table, and the programs' output goes to stderr.
func taskReporters(p *output.Printer, jobs []launch.BatchJob, tabled, several bool) func(launch.BatchJob) launch.TaskObserver {
	width := 0
	for _, j := range jobs {
		width = max(width, len(output.EscapeLine(j.Label)))
	}
	return func(j launch.BatchJob) launch.TaskObserver {
		prefix := ""
		if width > 0 && several {
			label := output.EscapeLine(j.Label)
			prefix = label + strings.Repeat(" ", width-len(label)) + " | "
		}
		r := views.NewTaskReporter(p)
		r.Pass = func(text string, toStderr bool) { p.Pass(prefix+text, toStderr || tabled) }
		r.Note = func(text string) { p.Note(j.Label + ": " + text) }
		return r
	}
}

// batchReader reads the tasks of --file.
type batchReader struct {
	d       *Deps
	p       *output.Printer
	typed   *launchOptions
	watch   ops.Reporter
	configs map[string]*config.Config // by the flags that make a difference
}

func newBatchReader(d *Deps, p *output.Printer, typed *launchOptions) *batchReader {
	return &batchReader{d: d, p: p, typed: typed, watch: &onceReporter{Reporter: p, said: map[string]bool{}}, configs: map[string]*config.Config{}}
}

// readFile reads the file, and checks all of it before anything is launched.
func (b *batchReader) readFile(ctx context.Context, req *launch.BatchRequest) error {
	path := b.d.Path(b.typed.file)
	text, err := hostfile.File{
		Flag: "--file", Path: path, Limit: config.MaxTaskFile, Hint: "name a readable file of tasks; docs/TASKS.md has an example",
	}.Read(ctx)
	if err != nil {
		return err
	}
	list, err := config.ReadTasks(b.typed.file, text)
	if err != nil {
		return err
	}
	if names := b.d.Globals.Providers; len(names) > 1 {
		return fault.Usage("--file: a task is launched at one provider, not at %s", strings.Join(names, ", ")).
			WithHint("the file may name one for each task: `provider: NAME`")
	}
	req.Name = cmp.Or(list.Batch, b.d.Process.Host+":"+path)
	for _, e := range list.Tasks {
		j, err := b.readJob(ctx, e, filepath.Dir(path))
		if err != nil {
			return fault.Placed(err, "", e.Place)
		}
		for _, i := range e.Needs {
			j.Needs = append(j.Needs, i+1)
		}
		if err := req.Add(j); err != nil {
			return err
		}
	}
	return nil
}

// readJob reads one entry as if its settings had been typed. A flag that was typed wins
// over the file.
func (b *batchReader) readJob(ctx context.Context, e config.TaskEntry, dir string) (launch.BatchJob, error) {
	o := &launchOptions{}
	o.addFlags(pflag.NewFlagSet("task", pflag.ContinueOnError))
	for _, s := range e.Settings {
		for _, v := range s.Values {
			if s.Flag == "env-file" && !filepath.IsAbs(v) {
				v = filepath.Join(dir, v)
			}
			if err := o.flags.Set(s.Flag, v); err != nil {
				return launch.BatchJob{}, fault.Usage("%s: it is not as --%s wants it", strings.ReplaceAll(s.Flag, "-", "_"), s.Flag)
			}
		}
	}
	if err := o.applyTypedFlags(b.typed.flags); err != nil {
		return launch.BatchJob{}, err
	}
	req, err := o.readRequest(ctx, b.d, b.p, e.Command)
	if err != nil {
		return launch.BatchJob{}, err
	}
	provider := e.Provider
	if typed := b.d.Globals.Providers; len(typed) > 0 {
		provider = typed[0] // a flag that was typed wins; more than one were refused
	}
	if req.Config, err = b.configOf(ctx, provider, o); err != nil {
		return launch.BatchJob{}, err
	}
	prepared, err := req.Prepare(ctx, b.d.Env, b.watch)
	return launch.BatchJob{PreparedTask: prepared, Key: e.Key, Place: e.Place}, err
}

// batchOnlyFlags are the flags that say how a batch is run, not what a task of it is.
func batchOnlyFlags() []string {
	return []string{"file", "parallel", "joblog", "again", "retry-failed", "compare"}
}

// applyTypedFlags lays the flags that were typed over those of a file.
func (o *launchOptions) applyTypedFlags(typed *pflag.FlagSet) error {
	var failed error
	typed.Visit(func(f *pflag.Flag) {
		to := o.flags.Lookup(f.Name)
		if to == nil || slices.Contains(batchOnlyFlags(), f.Name) || failed != nil {
			return
		}
		from, list := f.Value.(pflag.SliceValue)
		if !list {
			failed = o.flags.Set(f.Name, f.Value.String())
			return
		}
		values := from.GetSlice()
		into, _ := to.Value.(pflag.SliceValue)
		switch f.Name {
		case "env", "env-file", "label": // they add to the file's; of one name the last counts
			values = append(into.GetSlice(), values...)
		}
		to.Changed = true
		failed = into.Replace(values)
	})
	o.dropMeaningless(typed)
	return failed
}

// dropMeaningless drops settings that have no meaning for this task of the file: a typed flag
// wins over the file's setting that contradicts it.
func (o *launchOptions) dropMeaningless(typed *pflag.FlagSet) {
	unset := func(name string) {
		if f := o.flags.Lookup(name); f != nil {
			_ = f.Value.Set(f.DefValue) // it took it before
			f.Changed = false
		}
	}
	for name, other := range map[string]string{"push": "publish", "publish": "push"} {
		if typed.Changed(name) && !typed.Changed(other) {
			unset(other)
		}
	}
	given := o.flags.Changed
	if typed.Changed("base") && !given("push") && !given("publish") {
		unset("base")
	}
	if typed.Changed("keep-for") && !given("keep-alive") {
		unset("keep-for")
	}
}

// configOf is the configuration as the flags of one task make it.
func (b *batchReader) configOf(ctx context.Context, provider string, o *launchOptions) (*config.Config, error) {
	in := b.d.Input()
	in.Flags = maps.Clone(in.Flags)
	if in.Flags == nil {
		in.Flags = map[string]string{}
	}
	maps.Copy(in.Flags, o.configOverrides())
	if provider != "" {
		in.Flags["provider"] = provider
	}
	name := fmt.Sprintf("%q", in.Flags)
	if c, known := b.configs[name]; known {
		return c, nil
	}
	c, err := config.Load(ctx, in)
	if err == nil {
		b.configs[name] = c
	}
	return c, err
}

// onceReporter says each thing once, however many tasks give the occasion.
type onceReporter struct {
	ops.Reporter

	said map[string]bool
}

// Note is ops.Reporter's.
func (o *onceReporter) Note(text string) {
	if !o.said[text] {
		o.said[text] = true
		o.Reporter.Note(text)
	}
}

// Warn is ops.Reporter's.
func (o *onceReporter) Warn(text string) {
	if !o.said[text] {
		o.said[text] = true
		o.Reporter.Warn(text)
	}
}
