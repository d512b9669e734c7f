package commands

import (
	"cmp"
	"context"
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
	"sbx/internal/output"
)

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
func (b *batchReader) readFile(ctx context.Context, req *ops.BatchRequest) error {
	path := b.d.Path(b.typed.file)
	text, err := hostfile.File{Flag: "--file", Path: path, Limit: config.MaxTaskFile, Hint: "name a readable file of tasks; docs/TASKS.md has an example"}.Read(ctx)
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
		if err := req.Add(j); err != nil {
			return err
		}
	}
	return nil
}

// readJob reads one entry as if its settings had been typed. A flag that was typed wins
// over the file.
func (b *batchReader) readJob(ctx context.Context, e config.TaskEntry, dir string) (ops.BatchJob, error) {
	o := &launchOptions{}
	o.addFlags(pflag.NewFlagSet("task", pflag.ContinueOnError))
	for _, s := range e.Settings {
		for _, v := range s.Values {
			if s.Flag == "env-file" && !filepath.IsAbs(v) {
				v = filepath.Join(dir, v)
			}
			if err := o.flags.Set(s.Flag, v); err != nil {
				return ops.BatchJob{}, fault.Usage("%s: it is not as --%s wants it", strings.ReplaceAll(s.Flag, "-", "_"), s.Flag)
			}
		}
	}
	if err := o.applyTypedFlags(b.typed.flags); err != nil {
		return ops.BatchJob{}, err
	}
	req, err := o.readRequest(ctx, b.d, b.p, e.Command)
	if err != nil {
		return ops.BatchJob{}, err
	}
	provider := e.Provider
	if typed := b.d.Globals.Providers; len(typed) > 0 {
		provider = typed[0] // a flag that was typed wins; more than one were refused
	}
	if req.Config, err = b.configOf(ctx, provider, o); err != nil {
		return ops.BatchJob{}, err
	}
	prepared, err := req.Prepare(ctx, b.d.Env, b.watch)
	return ops.BatchJob{PreparedTask: prepared, Key: e.Key, Place: e.Place}, err
}

// ofBatch are the flags that say how a batch is run, not what a task of it is.
func ofBatch() []string {
	return []string{"file", "parallel", "warm", "joblog", "again", "retry-failed", "compare"}
}

// applyTypedFlags lays the flags that were typed over those of a file.
func (o *launchOptions) applyTypedFlags(typed *pflag.FlagSet) error {
	var failed error
	typed.Visit(func(f *pflag.Flag) {
		to := o.flags.Lookup(f.Name)
		if to == nil || slices.Contains(ofBatch(), f.Name) || failed != nil {
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
