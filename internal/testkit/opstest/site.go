package opstest

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
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

// Recorder is an ops.Observer that is no command line: it keeps what it is told and answers
// by a rule. It has no lock on purpose: an operation promises to call it from one goroutine
// at a time, and the race detector holds it to that.
type Recorder struct {
	Answer func(ops.Question) bool // nil = nobody can be asked
	OnItem func(item any)          // nil = nothing

	Items           []any
	Questions       []ops.Question
	Notes, Warnings []string
	Labels          []string // of progresses
	Open            int      // progresses that are not done
}

var _ ops.Observer = (*Recorder)(nil)

// Note implements ops.Observer.
func (r *Recorder) Note(text string) { r.Notes = append(r.Notes, text) }

// Warn implements ops.Observer.
func (r *Recorder) Warn(text string) { r.Warnings = append(r.Warnings, text) }

// Redact implements ops.Observer. It knows no secret.
func (*Recorder) Redact(text string) string { return text }

// Attended says whether somebody can be asked, as ops.IsAttended asks.
func (r *Recorder) Attended() bool { return r.Answer != nil }

// Progress implements ops.Observer.
func (r *Recorder) Progress(label string) ops.Progress { //nolint:ireturn // as ops.Observer has it
	r.Labels = append(r.Labels, label)
	r.Open++
	return &progress{r: r}
}

// Item implements ops.Observer.
func (r *Recorder) Item(item any) {
	r.Items = append(r.Items, item)
	if r.OnItem != nil {
		r.OnItem(item)
	}
}

// Endings are the items that say how a sandbox ended.
func (r *Recorder) Endings() []sandbox.Ending { return ItemsOf[sandbox.Ending](r) }

// Outcomes are the outcomes of the endings, by id.
func (r *Recorder) Outcomes() map[string]string { return Outcomes(r.Endings()) }

// ask is an ops.Asker.
func (r *Recorder) ask(_ context.Context, q ops.Question) (bool, error) {
	if r.Answer == nil {
		return false, nil
	}
	r.Questions = append(r.Questions, q)
	return r.Answer(q), nil
}

// Does does an act that its answers allow.
func (r *Recorder) Does(t *testing.T, act *ops.Act, err error) ops.ActResult {
	t.Helper()
	require.NoError(t, err)
	allowed, err := act.Permit(t.Context(), r.ask)
	if err != nil {
		return ops.NotBegun(act.RunID, err)
	}
	return act.Do(t.Context(), r, allowed)
}

// Yes answers every question.
func Yes(ops.Question) bool { return true }

type progress struct {
	r    *Recorder
	done bool
}

func (*progress) Update(string) {}

func (p *progress) Done() {
	if !p.done {
		p.done = true
		p.r.Open--
	}
}

// ItemsOf are the items of one type, in their order.
func ItemsOf[T any](r *Recorder) []T {
	var list []T
	for _, item := range r.Items {
		if one, ok := item.(T); ok {
			list = append(list, one)
		}
	}
	return list
}

// Outcomes are the endings by id.
func Outcomes(endings []sandbox.Ending) map[string]string {
	got := map[string]string{}
	for _, e := range endings {
		got[e.Ref.ID] = string(e.Outcome)
	}
	return got
}

// Site is a state directory with a configuration, and providers in memory. The store is
// SQLite; journals and lock are files.
type Site struct {
	Dir   string
	Fakes []*fake.Provider

	Requests fleet.EndRequests                       // nil = none are kept
	Wrap     func(*fake.Provider) providers.Provider // nil = as they are
	pid      int                                     // of the next process that works here
}

// NewSite makes a site.
func NewSite(t *testing.T, config string, fakes ...*fake.Provider) *Site {
	t.Helper()
	s := &Site{Dir: t.TempDir(), Fakes: fakes, pid: 100}
	file := filepath.Join(s.Dir, ".config", "sbx", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	return s
}

// OneProfile is the configuration of a site with the provider prod, all of which is owned.
const OneProfile = "providers:\n  prod: {type: fake, owned: all}\nlaunch: prod\n"

// Calm is OneProfile, in which nothing is stuck before a day.
const Calm = OneProfile + "thresholds: {stuck_age: 24h}\n"

// Env is what operations get in one process.
func (s *Site) Env(t *testing.T) *ops.Env {
	t.Helper()
	s.pid++
	p := process.Process{Args: []string{"sbx"}, Home: s.Dir, Workdir: s.Dir, PID: s.pid, Host: "host-1", Now: time.Now}
	types := []providers.Type{{Name: "fake"}}
	return NewEnv(Parts{
		Process: p, Types: types,
		Config: func() (*config.Config, error) {
			return config.Load(t.Context(), config.Input{Process: p, Types: types})
		},
		Members: func() []fleet.Member {
			var list []fleet.Member
			for _, f := range s.Fakes {
				var p providers.Provider = f
				if s.Wrap != nil {
					p = s.Wrap(f)
				}
				list = append(list, fleet.Member{Provider: p, Metadata: sandbox.DefaultMetadata()})
			}
			return list
		},
		Store:    func() store.Store { return s.Store(t) },
		Requests: s.Requests,
		Runs:     filepath.Join(s.Dir, "runs"), Endings: filepath.Join(s.Dir, "endings"),
	})
}

// Store opens the store of the site as a process of its own would.
func (s *Site) Store(t *testing.T) *store.Database {
	t.Helper()
	st, err := store.New(store.Options{StateDir: s.Dir})
	require.NoError(t, err)
	return st
}

// Seeds are running sandboxes of half an hour.
func Seeds(ids ...string) []fake.Seed {
	list := make([]fake.Seed, len(ids))
	for i, id := range ids {
		at := time.Now().Add(-30 * time.Minute)
		list[i] = fake.Seed{Sandbox: sandbox.Sandbox{ID: id, State: sandbox.StateRunning, CreatedAt: at, StartedAt: at}}
	}
	return list
}

// Prod is a provider with sandboxes of half an hour, one that is young, and one that its
// label keeps.
func Prod(ids ...string) *fake.Provider {
	p := fake.New(fake.Options{Name: "prod"})
	list := append(Seeds(ids...), Seeds("young001", "label001")...)
	young := &list[len(ids)].Sandbox
	young.CreatedAt, young.StartedAt = time.Now(), time.Now()
	list[len(ids)+1].Sandbox.Labels = map[string]string{sandbox.LabelKeep: "true"}
	p.Add(list...)
	return p
}

// Crowd is a provider with so many young sandboxes, which are at work as far as anybody knows.
func Crowd(n int) *fake.Provider {
	p := fake.New(fake.Options{Name: "prod"})
	for i := range n {
		seed := Seeds("box" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + "001")[0]
		seed.Sandbox.CreatedAt, seed.Sandbox.StartedAt = time.Now(), time.Now()
		p.Add(seed)
	}
	return p
}

// Asked are the sandboxes whose end was requested, as often as it was.
func Asked(p *fake.Provider) []string {
	var ids []string
	for _, call := range p.Calls(fake.OpTerminate) {
		ids = append(ids, call.ID)
	}
	return ids
}
