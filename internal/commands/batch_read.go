package commands

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/hostfile"
	"sbx/internal/publish"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// job is one task of a batch.
type job struct {
	seq    int    // its place, from 1
	label  string // what it is called where several run at once
	key    string // of its own; "" = work and twin are its key
	work   string
	twin   int // how many jobs before it are the same
	spec   task.Spec
	env    []string
	secret publish.Target
	full   sandbox.Spec // what is asked of the provider
	place  string       // in the file; "" = in none
}

// batchFile is a file of tasks, read and checked.
type batchFile struct {
	name string // of the batch
	jobs []job
}

// readBatch reads the file of --file, and checks all of it before anything is
// launched.
func (l *launching) readBatch(ctx context.Context) (batchFile, error) {
	path := l.o.file
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.d.Process.Workdir, path)
	}
	text, err := hostfile.File{Flag: "--file", Path: path, Limit: config.MaxTaskFile, Hint: "name a readable file of tasks; docs/TASKS.md has an example"}.Read(ctx)
	if err != nil {
		return batchFile{}, err
	}
	list, err := config.ReadTasks(l.o.file, text)
	if err != nil {
		return batchFile{}, err
	}
	if len(l.d.Globals.Providers) > 1 {
		return batchFile{}, fault.Usage("--file: a task is launched at one provider, not at %s", strings.Join(l.d.Globals.Providers, ", ")).
			WithHint("the file may name one for each task: `provider: NAME`")
	}
	l.said, l.configs = map[string]bool{}, map[string]*config.Config{}
	b := batchFile{name: cmp.Or(list.Batch, l.d.Process.Host+":"+path)}
	for i, e := range list.Tasks {
		j, err := l.job(ctx, e, filepath.Dir(path))
		if err != nil {
			return b, fault.Placed(err, "", e.Place)
		}
		j.seq = i + 1
		j.label = cmp.Or(j.spec.Name, j.key, strconv.Itoa(j.seq))
		if err := b.distinct(&j); err != nil {
			return b, fault.Placed(err, "", e.Place)
		}
		b.jobs = append(b.jobs, j)
	}
	return b, nil
}

// job reads one entry as if its settings had been typed. A flag that was typed wins
// over the file.
func (l *launching) job(ctx context.Context, e config.TaskEntry, dir string) (job, error) {
	o := &launchOptions{}
	o.add(pflag.NewFlagSet("task", pflag.ContinueOnError))
	for _, s := range e.Settings {
		for _, v := range s.Values {
			if s.Flag == "env-file" && !filepath.IsAbs(v) {
				v = filepath.Join(dir, v)
			}
			if err := o.flags.Set(s.Flag, v); err != nil {
				return job{}, fault.Usage("%s: it is not as --%s wants it", strings.ReplaceAll(s.Flag, "-", "_"), s.Flag)
			}
		}
	}
	if err := o.override(l.o.flags); err != nil {
		return job{}, err
	}
	one, err := newLaunch(ctx, l.d, l.p, o, e.Command)
	if err != nil {
		return job{}, err
	}
	one.said = l.said
	provider := e.Provider
	if typed := l.d.Globals.Providers; len(typed) > 0 {
		provider = typed[0] // a flag that was typed wins; more than one were refused
	}
	if one.config, err = l.configOf(ctx, provider, o); err != nil {
		return job{}, err
	}
	spec, err := one.spec(ctx)
	if err != nil {
		return job{}, err
	}
	return job{key: e.Key, work: spec.Work(), spec: spec, env: one.box.Env, secret: one.secret, full: one.full, place: e.Place}, nil
}

// ofBatch are the flags that say how a batch is run, not what a task of it is.
func ofBatch() []string {
	return []string{"file", "parallel", "warm", "joblog", "again", "retry-failed", "compare"}
}

// override lays the flags that were typed over those of a file.
func (o *launchOptions) override(typed *pflag.FlagSet) error {
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
	o.settle(typed)
	return failed
}

// settle drops what has no meaning for this task of the file: what was typed for all of
// them stands above what the file says against it.
func (o *launchOptions) settle(typed *pflag.FlagSet) {
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

// distinct keeps two tasks from being taken for one: those that differ only in what
// their variables are set to, which is kept nowhere. The same task written twice is
// two tasks.
func (b *batchFile) distinct(j *job) error {
	for _, other := range b.jobs {
		if other.key != "" || j.key != "" || other.work != j.work {
			continue
		}
		if !slices.Equal(other.env, j.env) {
			return fault.Usage("it differs from task %d by the values of its environment alone", other.seq).
				WithHint("give each of them a name or a key, so that a second run knows them apart")
		}
		j.twin++
	}
	return nil
}

// keyOf is under what a job is kept: its own key, or one that its work makes. round
// grows with each --again.
func (b *batchFile) keyOf(j job, round int) string {
	if j.key != "" {
		if round > 1 {
			return j.key + "." + strconv.Itoa(round)
		}
		return j.key
	}
	text := strings.Join([]string{b.name, strconv.Itoa(round), j.work, strconv.Itoa(j.twin)}, "\x00")
	sum := sha256.Sum256([]byte(text))
	return "file-" + hex.EncodeToString(sum[:10])
}

// configOf is the configuration as the flags of one task make it.
func (l *launching) configOf(ctx context.Context, provider string, o *launchOptions) (*config.Config, error) {
	in := l.d.Input()
	in.Flags = maps.Clone(in.Flags)
	if in.Flags == nil {
		in.Flags = map[string]string{}
	}
	maps.Copy(in.Flags, o.settings())
	if provider != "" {
		in.Flags["provider"] = provider
	}
	name := fmt.Sprintf("%q", in.Flags)
	if c, known := l.configs[name]; known {
		return c, nil
	}
	c, err := config.Load(ctx, in)
	if err == nil {
		l.configs[name] = c
	}
	return c, err
}

// once says something once, however many tasks give the occasion.
func (l *launching) once(say func(string), text string) {
	if l.said == nil {
		l.said = map[string]bool{}
	}
	if !l.said[text] {
		l.said[text] = true
		say(text)
	}
}
