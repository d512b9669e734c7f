package ops_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/launch"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

// recorder is an ops.Observer that is no command line: it keeps what it is told and answers
// by a rule. It has no lock on purpose: an operation promises to call it from one goroutine
// at a time, and the race detector holds it to that.
type recorder struct {
	answer func(ops.Question) bool // nil = nobody can be asked
	onItem func(item any)          // nil = nothing

	items           []any
	questions       []ops.Question
	notes, warnings []string
	progress        []string
	open            int // progresses that are not done
}

var (
	_ ops.Observer        = (*recorder)(nil)
	_ launch.TaskObserver = taskRecorder{}
)

func (r *recorder) Note(text string)            { r.notes = append(r.notes, text) }
func (r *recorder) Warn(text string)            { r.warnings = append(r.warnings, text) }
func (r *recorder) Redact(text string) string   { return text }
func (r *recorder) Attended() bool              { return r.answer != nil } // as ops.IsAttended asks
func (r *recorder) endings() []sandbox.Ending   { return itemsOf[sandbox.Ending](r) }
func (r *recorder) started() []ops.RunStarted   { return itemsOf[ops.RunStarted](r) }
func (r *recorder) outcomes() map[string]string { return outcomes(r.endings()) }

func (r *recorder) Progress(label string) ops.Progress {
	r.progress = append(r.progress, label)
	r.open++
	return &progress{r: r}
}

func (r *recorder) Item(item any) {
	r.items = append(r.items, item)
	if r.onItem != nil {
		r.onItem(item)
	}
}

// ask is an ops.Asker.
func (r *recorder) ask(_ context.Context, q ops.Question) (bool, error) {
	if r.answer == nil {
		return false, nil
	}
	r.questions = append(r.questions, q)
	return r.answer(q), nil
}

// does an act that its answers allow.
func (r *recorder) does(t *testing.T, act *ops.Act, err error) ops.ActResult {
	t.Helper()
	require.NoError(t, err)
	allowed, err := act.Permit(t.Context(), r.ask)
	if err != nil {
		return ops.NotBegun(act.RunID, err)
	}
	return act.Do(t.Context(), r, allowed)
}

type progress struct {
	r    *recorder
	done bool
}

func (*progress) Update(string) {}

func (p *progress) Done() {
	if !p.done {
		p.done = true
		p.r.open--
	}
}

// itemsOf are the items of one type, in their order.
func itemsOf[T any](r *recorder) []T {
	var list []T
	for _, item := range r.items {
		if one, ok := item.(T); ok {
			list = append(list, one)
		}
	}
	return list
}

// outcomes are the endings by id.
func outcomes(endings []sandbox.Ending) map[string]string {
	got := map[string]string{}
	for _, e := range endings {
		got[e.Ref.ID] = string(e.Outcome)
	}
	return got
}

// taskRecorder passes on that a program writes.
type taskRecorder struct{ output func(sandbox.LogLine) }

func (taskRecorder) Changed(task.Task)             {}
func (taskRecorder) Message(string)                {}
func (t taskRecorder) Output(line sandbox.LogLine) { t.output(line) }
func (taskRecorder) Close()                        {}

// site is a state directory with a configuration, and providers in memory. The store is
// SQLite; journals and lock are files.
type site struct {
	dir   string
	fakes []*fake.Provider

	requests fleet.EndRequests                       // nil = none are kept
	wrap     func(*fake.Provider) providers.Provider // nil = as they are
	pid      int                                     // of the next process that works here
}

func newSite(t *testing.T, config string, fakes ...*fake.Provider) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), fakes: fakes, pid: 100}
	file := filepath.Join(s.dir, ".config", "sbx", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	return s
}

const oneProfile = "providers:\n  prod: {type: fake, owned: all}\nlaunch: prod\n"

// env is what operations get in one process that reports to r.
func (s *site) env(t *testing.T, _ ops.Reporter) *ops.Env {
	t.Helper()
	s.pid++
	p := process.Process{Args: []string{"sbx"}, Home: s.dir, Workdir: s.dir, PID: s.pid, Host: "host-1", Now: time.Now}
	types := []providers.Type{{Name: "fake"}}
	return opstest.NewEnv(opstest.Parts{
		Process: p, Types: types,
		Config: func() (*config.Config, error) {
			return config.Load(t.Context(), config.Input{Process: p, Types: types})
		},
		Members: func() []fleet.Member {
			var list []fleet.Member
			for _, f := range s.fakes {
				var p providers.Provider = f
				if s.wrap != nil {
					p = s.wrap(f)
				}
				list = append(list, fleet.Member{Provider: p, Metadata: sandbox.DefaultMetadata()})
			}
			return list
		},
		Store:    func() store.Store { return s.store(t) },
		Requests: s.requests,
		Runs:     filepath.Join(s.dir, "runs"), Endings: filepath.Join(s.dir, "endings"),
	})
}

// store opens the store of the site as a process of its own would.
func (s *site) store(t *testing.T) *store.Database {
	t.Helper()
	st, err := store.New(store.Options{StateDir: s.dir})
	require.NoError(t, err)
	return st
}

// seeds are running sandboxes of half an hour.
func seeds(ids ...string) []fake.Seed {
	list := make([]fake.Seed, len(ids))
	for i, id := range ids {
		at := time.Now().Add(-30 * time.Minute)
		list[i] = fake.Seed{Sandbox: sandbox.Sandbox{ID: id, State: sandbox.StateRunning, CreatedAt: at, StartedAt: at}}
	}
	return list
}

// prod is a provider with sandboxes of half an hour, one that is young, and one that its
// label keeps.
func prod(ids ...string) *fake.Provider {
	p := fake.New(fake.Options{Name: "prod"})
	list := append(seeds(ids...), seeds("young001", "label001")...)
	young := &list[len(ids)].Sandbox
	young.CreatedAt, young.StartedAt = time.Now(), time.Now()
	list[len(ids)+1].Sandbox.Labels = map[string]string{sandbox.LabelKeep: "true"}
	p.Add(list...)
	return p
}
