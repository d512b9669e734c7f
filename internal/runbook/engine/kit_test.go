package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fleet"
	"sbx/internal/journal"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/runbook"
	"sbx/internal/runbook/engine"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
	"sbx/runbooks"
)

// person is an engine.Observer that answers questions by a rule, and keeps what it is told.
type person struct {
	// answer gives what is typed; false = the input ends. Nil = nobody is there.
	answer func(q ops.Question) (string, bool)

	onItem func(item any) // nil = nothing

	steps     []engine.Step // each time one changed
	questions []ops.Question
	warnings  []string
}

var _ engine.Observer = (*person)(nil)

func (*person) Note(string)               {}
func (p *person) Warn(text string)        { p.warnings = append(p.warnings, text) }
func (*person) Redact(text string) string { return text }
func (p *person) Attended() bool          { return p.answer != nil }

func (*person) Progress(string) ops.Progress { return silence{} }

type silence struct{}

func (silence) Update(string) {}
func (silence) Done()         {}

func (p *person) Item(item any) {
	if s, ok := item.(engine.Step); ok {
		p.steps = append(p.steps, s)
	}
	if p.onItem != nil {
		p.onItem(item)
	}
}

func (p *person) Ask(ctx context.Context, q ops.Question) (string, bool, error) {
	p.questions = append(p.questions, q)
	if p.answer == nil {
		return "", false, nil
	}
	text, answered := p.answer(q)
	return text, answered, ctx.Err()
}

// typesWords answers each question with the word that is a yes, and ends manual steps.
func typesWords(q ops.Question) (string, bool) { return q.Word, true }

// saysNo answers each gate with no, and skips manual steps.
func saysNo(q ops.Question) (string, bool) {
	if q.Word == "" {
		return "skip", true
	}
	return "no", true
}

func endsTheInput(ops.Question) (string, bool) { return "", false }

// site is a state directory with a configuration, and providers in memory.
type site struct {
	dir   string
	fakes []providers.Provider
	store *store.InMemory
	pid   int
}

func newSite(t *testing.T, config string, fakes ...providers.Provider) *site {
	t.Helper()
	s := &site{dir: t.TempDir(), fakes: fakes, pid: 100, store: store.Memory(time.Now)}
	file := filepath.Join(s.dir, ".config", "sbx", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("providers:\n  prod: {type: fake, owned: all}\nlaunch: prod\n"+config), 0o600))
	return s
}

// env is what one process at this site gets.
func (s *site) env(t *testing.T) *ops.Env {
	t.Helper()
	s.pid++
	p := process.Process{Args: []string{"sbx"}, Home: s.dir, Workdir: s.dir, PID: s.pid, Host: "host-1", Now: time.Now}
	types := []providers.Type{{Name: "fake"}}
	env := opstest.NewEnv(opstest.Parts{
		Process: p, Types: types,
		Config: func() (*config.Config, error) {
			return config.Load(t.Context(), config.Input{Process: p, Types: types})
		},
		Members: func() []fleet.Member {
			var list []fleet.Member
			for _, f := range s.fakes {
				list = append(list, fleet.Member{Provider: f, Metadata: sandbox.DefaultMetadata(), MaxSandboxes: 100})
			}
			return list
		},
		Store: func() store.Store { return s.store },
		Runs:  filepath.Join(s.dir, "runs"), Endings: filepath.Join(s.dir, "endings"),
	})
	env.Program = func() (string, error) { return "/bin/false", nil }
	env.Input = func() config.Input { return config.Input{Process: p, Types: types} }
	return env
}

func (s *site) disk() journal.Dir { return journal.Dir(filepath.Join(s.dir, "runbook-runs")) }

// run runs a runbook in a process of its own.
func (s *site) run(t *testing.T, req engine.Request, watch *person) *engine.Run {
	t.Helper()
	run, err := engine.Start(t.Context(), s.env(t), req, watch)
	require.NoError(t, err)
	return run
}

// shipped is a runbook that sbx ships.
func shipped(t *testing.T, id string) *runbook.Runbook {
	t.Helper()
	catalog, err := runbook.Library{Shipped: runbooks.Files}.Load(t.Context())
	require.NoError(t, err)
	book, err := catalog.Find(id)
	require.NoError(t, err)
	return book
}

// written is a runbook with these steps behind a fixed head.
func written(t *testing.T, spec string) *runbook.Runbook {
	t.Helper()
	text := `apiVersion: sbx/v1
kind: Runbook
metadata:
  id: mine
  title: Mine
  owner: Us
  updated: 2026-11-01
  review_every: 3650d
  eta: 1m
spec:
  meaning: Something is wrong.
  impact: Somebody notices.
` + spec
	book, found := runbook.Parse("mine.yaml", []byte(text))
	for _, f := range found {
		t.Fatal(f.Place(), f.Message)
	}
	return book
}

// alive is a running sandbox of half an hour.
func alive(id string) fake.Seed {
	at := time.Now().Add(-30 * time.Minute)
	return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, State: sandbox.StateRunning, CreatedAt: at, StartedAt: at, AgentType: "coder", Owner: "us"}}
}

// looping is one with a busy processor and an old log.
func looping(id string) fake.Seed {
	seed := alive(id)
	at := seed.Sandbox.CreatedAt
	seed.Sandbox.LastActivityAt = at.Add(time.Minute)
	seed.Logs = []sandbox.LogLine{{At: at.Add(time.Minute), Stream: "stdout", Text: "planning step 1"}}
	seed.Usage = usage(1, 40_000)
	return seed
}

// calm is one at work.
func calm(id string) fake.Seed {
	seed := alive(id)
	seed.Sandbox.LastActivityAt = time.Now()
	seed.Logs = []sandbox.LogLine{{At: time.Now(), Stream: "stdout", Text: "step 7 done"}}
	seed.Usage = usage(0.3, 10)
	return seed
}

func usage(cores float64, operations int64) func(time.Time) sandbox.Usage {
	var n, began atomic.Int64
	return func(now time.Time) sandbox.Usage {
		i := n.Add(1)
		began.CompareAndSwap(0, now.UnixNano())
		return sandbox.Usage{
			At: time.Unix(0, began.Load()).Add(time.Duration(i) * time.Second), CPUSeconds: new(float64(i) * cores), MemoryBytes: new(int64(100 * sandbox.MiB)),
			Operations: new(i * operations), PIDs: new(int64(3)), OOMKills: new(int64(0)), Source: "cgroup2 + /proc",
		}
	}
}

// prod is a provider with these sandboxes.
func prod(o fake.Options, seeds ...fake.Seed) *fake.Provider {
	o.Name = "prod"
	p := fake.New(o)
	p.Add(seeds...)
	return p
}

// stateOf is the state of a sandbox now.
func stateOf(t *testing.T, p *fake.Provider, id string) sandbox.State {
	t.Helper()
	s, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	return s.State
}

// ends are how often each sandbox was asked to end.
func ends(p *fake.Provider) map[string]int {
	n := map[string]int{}
	for _, c := range p.Calls() {
		if c.Op == fake.OpTerminate {
			n[c.ID]++
		}
	}
	return n
}

// stateOfStep is the state and verdict of a step.
func stateOfStep(t *testing.T, r *engine.Run, id string) string {
	t.Helper()
	s := r.Step(id)
	require.NotNil(t, s, id)
	return string(s.State) + " " + string(s.Verdict)
}
