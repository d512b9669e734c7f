package commands

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/output"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/documentstest"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
	"sbx/runbooks"
)

// noon is the time in every test of this room.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

// bench runs verbs over fake providers, without a process.
type bench struct {
	members []providers.Provider
	shared  store.Store // of several hosts; nil = none
	stdin   string
	tty     bool
	width   int
	control ops.ControlPlane // nil = there is no control plane
	env     []string
	name    string                                // what the program is called by; "" = sbx
	home    string                                // with the state directory and the user's file
	workdir string                                // where it was started
	adjust  func(*Deps)                           // last changes, by the test
	context func(context.Context) context.Context // the operator's signals, by the test
	store   *store.InMemory
	waits   fleet.Waits
	sample  time.Duration    // between the samples of a look; 0 = a millisecond
	now     func() time.Time // nil = noon for ever

	keeps      *task.KeepList    // nil = tasks keep nothing
	types      []providers.Type  // beside local and fake; with some, --provider reaches the configuration
	endings    string            // the folder of journals of endings
	background []string          // what background runners were told
	most       map[string]int    // max_sandboxes of the profiles
	requests   fleet.EndRequests // the stored requests to end a sandbox
	history    fleet.History     // what earlier looks have seen; nil = nothing
	names      fleet.NameCache   // of earlier listings; nil = none is kept
	source     providers.Source  // beside each provider; nil = none
	printed    func(text string) // is called with what is written to stdout; nil = nothing is
}

// Write is the tee of stdout.
func (b *bench) Write(text []byte) (int, error) {
	if b.printed != nil {
		b.printed(string(text))
	}
	return len(text), nil
}

// result is what a verb left.
type result struct {
	code           int
	stdout, stderr string
	err            error
}

func newBench(fakes ...*fake.Provider) *bench {
	b := &bench{}
	for _, f := range fakes {
		b.members = append(b.members, f)
	}
	return b
}

// oneFake is a bench over one provider `prod` with these sandboxes.
func oneFake(seeds ...fake.Seed) (*bench, *fake.Provider) {
	p := fake.New(fake.Options{Name: "prod", Now: atNoon})
	p.Add(seeds...)
	return newBench(p), p
}

func running(id string, age time.Duration) fake.Seed {
	return fake.Seed{Sandbox: sandbox.Sandbox{
		ID: id, State: sandbox.StateRunning, CreatedAt: noon.Add(-age), StartedAt: noon.Add(-age), TaskID: "t-" + id,
	}}
}

// run runs one command line, its words separated by spaces.
func (b *bench) run(tb testing.TB, line string) result {
	tb.Helper()
	return b.runArgs(tb, strings.Fields(line)...)
}

func (b *bench) runArgs(tb testing.TB, args ...string) result {
	tb.Helper()
	b.endings = cmp.Or(b.endings, tb.TempDir())
	var out, errs bytes.Buffer
	p := process.Process{
		Args: append([]string{cmp.Or(b.name, "sbx")}, args...), Home: b.home, Workdir: b.workdir, PID: 4711, Host: "cron-1", Environ: append([]string{"TERM=xterm"}, b.env...), Now: b.clock(),
		Stdin:  process.Stream{Reader: strings.NewReader(b.stdin), TTY: b.tty},
		Stdout: process.Stream{Writer: io.MultiWriter(&out, b), TTY: b.tty, Width: b.width},
		Stderr: process.Stream{Writer: &errs, TTY: b.tty, Width: b.width},
	}
	d, began := b.assemble(p)
	root := NewRoot(d)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errs)
	ctx := tb.Context()
	if b.context != nil {
		ctx = b.context(ctx)
	}
	err := root.ExecuteContext(ctx)
	if _, known := errors.AsType[*fault.Error](err); err != nil && !known && !*began {
		err = fault.Usage("%w", err)
	}
	own, program := errors.AsType[launch.ProgramExit](err)
	if printer, printerErr := d.Printer(); printerErr == nil && !program {
		printer.Report(err)
	}
	d.SendNotifications(ctx)
	assert.NoError(tb, documentstest.Check(out.Bytes(), args), "%v", args)
	assert.NoError(tb, documentstest.Check(errs.Bytes(), args), "%v", args) // a wrong use
	r := result{code: fault.ExitCode(err), stdout: out.String(), stderr: errs.String(), err: err}
	if program {
		r.code = own.Code
	}
	return r
}

// hostType is a type whose sandboxes are processes of this machine.
func hostType() providers.Type {
	return providers.Type{
		Name: "local", Always: true, TellsQuota: true, KeepsRecords: true,
		Facts: providers.Facts{HostBound: true, HostProcesses: true, InStateDir: true, SizedByProfile: true, OwnsAll: true, LaunchDefault: true, EndKeeps: providers.EndKeepsRecord},
	}
}

func (b *bench) assemble(p process.Process) (*Deps, *bool) {
	var globals Globals
	began := new(bool)
	var printer *output.Printer
	types := append([]providers.Type{hostType(), {Name: "fake"}}, b.types...)
	var d *Deps
	input := func() config.Input {
		flags := maps.Clone(globals.Settings)
		if len(b.types) > 0 && len(globals.Providers) > 0 {
			flags = map[string]string{"provider": strings.Join(globals.Providers, ",")}
			maps.Copy(flags, globals.Settings)
		}
		return config.Input{Process: p, Types: types, File: globals.Config, Flags: flags}
	}
	d = &Deps{
		Runbooks: runbooks.Files,
		Globals:  &globals,
		Printer: func() (*output.Printer, error) {
			if printer != nil {
				return printer, nil
			}
			format, err := output.ParseFormat(context.Background(), globals.Output)
			if err != nil {
				return nil, err
			}
			printer = output.New(p, output.Options{
				Format: format, Columns: globals.Columns, NoColor: globals.NoColor, Quiet: globals.Quiet, Verbose: globals.Verbose, Awaited: b.waits.Awaited,
			})
			return printer, nil
		},
		Size:        func() (providers.Size, <-chan providers.Size, func()) { return providers.Size{}, nil, func() {} },
		RawTerminal: func() (func(), error) { return func() {}, nil },
		Began:       func(context.Context) { *began = true },
	}
	d.Env = b.operations(p, types, d, input)
	if b.adjust != nil {
		b.adjust(d)
	}
	return d, began
}

// operations is what operations get in a test.
func (b *bench) operations(p process.Process, types []providers.Type, d *Deps, input func() config.Input) *ops.Env {
	env := opstest.NewEnv(opstest.Parts{
		Process: p, Types: types, Runs: filepath.Join(cmp.Or(b.home, b.endings), "runs"), Endings: b.endings, Sample: b.sample, Requests: b.requests, History: b.history, Names: b.names,
		Config:  func() (*config.Config, error) { return config.Load(context.Background(), input()) },
		Members: b.opened, Asking: b.waits.Begin,
		Selected: func() []string { return d.Globals.Providers },
		Store:    func() store.Store { return b.kept(p.Now) },
	})
	env.Input = input
	env.Program = func() (string, error) { return "/bin/false", nil }
	env.Control = func() (ops.ControlPlane, error) { return b.control, nil }
	env.Shared = func() (store.Store, error) { return b.shared, nil }
	tasks := env.Tasks
	env.Tasks = func(ctx context.Context, parts ops.TaskParts) (task.Options, error) {
		options, err := tasks(ctx, parts)
		options.KeepList = b.keeps
		return options, err
	}
	env.Background = func(_ context.Context, id string, order []byte) (task.Owner, error) {
		b.background = append(b.background, id+" "+string(order))
		return task.Owner{Host: "h", PID: 7, Who: "its runner"}, nil
	}
	return env
}

func (b *bench) opened() []fleet.Member {
	var list []fleet.Member
	for _, m := range b.members {
		one := fleet.Member{Provider: m, Metadata: sandbox.DefaultMetadata(), MaxSandboxes: b.most[m.Name()], Remote: true}
		if b.source != nil {
			one.Sources = []providers.Source{b.source}
		}
		list = append(list, one)
	}
	return list
}

func (b *bench) clock() func() time.Time {
	if b.now != nil {
		return b.now
	}
	return atNoon
}

// object is the one JSON document on stdout.
func (r result) object(tb testing.TB) map[string]any {
	tb.Helper()
	var object map[string]any
	decoder := json.NewDecoder(strings.NewReader(r.stdout))
	require.NoError(tb, decoder.Decode(&object), "stdout is no JSON document: %q (stderr %q)", r.stdout, r.stderr)
	require.False(tb, decoder.More(), "more than one document: %q", r.stdout)
	return object
}

// list gives one list of objects of the document, such as "items".
func (r result) list(tb testing.TB, key string) []map[string]any {
	tb.Helper()
	raw, ok := r.object(tb)[key].([]any)
	require.True(tb, ok, "no %s: %s", key, r.stdout)
	out := make([]map[string]any, len(raw))
	for i, item := range raw {
		out[i], ok = item.(map[string]any)
		require.True(tb, ok)
	}
	return out
}

// item is the document's one object.
func (r result) item(tb testing.TB) map[string]any {
	tb.Helper()
	item, ok := r.object(tb)["item"].(map[string]any)
	require.True(tb, ok, "no item: %s", r.stdout)
	return item
}

// kept is the store of all runs over this bench.
func (b *bench) kept(now func() time.Time) store.Store {
	if b.store == nil {
		b.store = store.Memory(now)
	}
	return b.store
}

// written are the kinds of all lines in the journals, oldest first.
func (b *bench) written(t *testing.T) []string {
	t.Helper()
	disk := journal.Dir(filepath.Join(b.home, "runs"))
	runs, err := journal.Runs(disk)
	require.NoError(t, err)
	var kinds []string
	for _, run := range runs {
		log, err := journal.Read(disk, run)
		require.NoError(t, err)
		assert.Empty(t, log.Broken)
		for _, e := range log.Entries {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}
