package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/opstest"
	"sbx/internal/testkit/wiretest"
)

// ageLimit is the limit of the rule; the sandboxes of a world are 5 and 40 minutes old.
const (
	ageLimit = 20 * time.Minute
	youngAge = 5 * time.Minute
)

// world is one profile of a cloud, of which the truth is known, and the processes that act on it.
type world struct {
	t        wiretest.T
	c        *cloud
	dir      string
	store    store.Store
	requests *keptRequests
	old      []string        // ours, old: the rule selects them
	others   map[string]bool // never selected by the rule: young, kept, of somebody else
	named    map[string]bool // by reference in some act
	dying    map[string]bool // another client has ended it, which may take a moment
	stuck    map[string]bool // does nothing
	young    string          // ours, and not selected before its age is reached
	aged     bool            // a lie may make it look as old
	kept     string          // ours, and labelled to stay
	began    time.Time
	history  *keptSamples // of earlier looks; nil = none is kept
	lie      lie          // the one that is told; zero = none
	trace    []string     // what was done, for a failure
}

// newWorld makes three old sandboxes and three that no rule may end.
func newWorld(t *testing.T, c *cloud) *world {
	t.Helper()
	w := &world{t: t, c: c, dir: t.TempDir(), began: time.Now(), store: store.Memory(time.Now), requests: &keptRequests{all: map[sandbox.Ref]sandbox.EndRequest{}}, others: map[string]bool{}, named: map[string]bool{}, dying: map[string]bool{}}
	mine := map[string]string{sandbox.LabelOwner: "test"}
	for range 3 {
		w.old = append(w.old, c.add(2*ageLimit, mine))
	}
	w.young = c.add(youngAge, mine)
	w.others[w.young] = true
	if c.owned == "" {
		w.kept = c.add(2*ageLimit, map[string]string{sandbox.LabelOwner: "test", sandbox.LabelKeep: "true"})
		w.others[w.kept] = true
		w.others[c.add(2*ageLimit, nil)] = true
	}
	fields := []string{"type: " + c.kind.Name, "owned: " + cmp.Or(c.owned, "{labels: {"+sandbox.LabelOwner+": test}}")}
	for key, value := range c.settings {
		fields = append(fields, fmt.Sprintf("%s: %q", key, value))
	}
	text := "providers:\n  prod: {" + strings.Join(fields, ", ") + "}\nlimits: {max_fraction: 100%}\n"
	require.NoError(t, w.store.PutRecord(t.Context(), store.Record{Provider: "prod", ID: w.young, State: sandbox.StateRunning, CreatedAt: w.began.Add(-youngAge)}))
	file := filepath.Join(w.dir, ".config", "sbx", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return w
}

// ids are all sandboxes of the world.
func (w *world) ids() []string { return append(slices.Sorted(maps.Keys(w.others)), w.old...) }

// mayEnd reports whether a rule may end a sandbox.
func (w *world) mayEnd(id string) bool {
	return slices.Contains(w.old, id) || id == w.young && (w.aged || time.Since(w.began) > ageLimit-youngAge)
}

// process is a new process of the program: nothing that another one has read is known.
func (w *world) process() *ops.Env {
	p := process.Process{Args: []string{"sbx"}, Home: w.dir, Workdir: w.dir, Host: "host-1", PID: 7, Now: time.Now}
	types := []providers.Type{w.c.kind}
	member := fleet.Member{Provider: open(w.t, w.c.kind, w.c.settings, w.c.server), Metadata: sandbox.DefaultMetadata(), Timeout: 20 * time.Second}
	if w.c.attach != nil {
		member.Sources = []providers.Source{w.c.attach()}
	}
	var kept fleet.History
	if w.history != nil {
		kept = w.history
	}
	env := opstest.NewEnv(opstest.Parts{
		Process: p, Types: types,
		Config: func() (*config.Config, error) {
			return config.Load(context.Background(), config.Input{Process: p, Types: types})
		},
		Members: func() []fleet.Member { return []fleet.Member{member} },
		History: kept, Sample: fleet.DefaultSample,
		Store: func() store.Store { return w.store },
		Runs:  filepath.Join(w.dir, "runs"), Endings: filepath.Join(w.dir, "endings"),
		Poll:     fleet.Poll{Min: fleet.DefaultPollMin, Max: fleet.DefaultPollMax},
		Requests: w.requests,
	})
	env.Input = func() config.Input { return config.Input{Process: p, Types: types} }
	return env
}

// do runs an act and returns what the program has said of it.
func (w *world) do(ctx context.Context, a act) claim {
	got := a.run(ctx, w)
	words := []string{a.name + ":"}
	for _, e := range got.endings {
		words = append(words, fmt.Sprintf("[%s %s %s]", e.Ref.ID, e.Outcome, e.Reason))
	}
	w.trace = append(w.trace, strings.Join(append(words, fmt.Sprintf("exit %d %v", fault.ExitCode(got.verdict), got.verdict)), " "))
	return got
}

func (w *world) story() string { return "\n" + strings.Join(w.trace, "\n") }

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// keptRequests is fleet.EndRequests, which all processes share.
type keptRequests struct {
	mu  sync.Mutex
	all map[sandbox.Ref]sandbox.EndRequest
}

func (k *keptRequests) Unconfirmed(context.Context) (map[sandbox.Ref]sandbox.EndRequest, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.all), nil
}

// has reports whether an end is on record as not proved: the API may have forgotten what runs on.
func (k *keptRequests) has(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, kept := k.all[sandbox.Ref{Provider: "prod", ID: id}]
	return kept
}

func (k *keptRequests) Keep(_ context.Context, ref sandbox.Ref, r sandbox.EndRequest) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all[ref] = r
	return nil
}

func (k *keptRequests) Forget(_ context.Context, ref sandbox.Ref) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.all, ref)
	return nil
}

// noObserver keeps nothing and cannot be asked.
type noObserver struct{}

func (noObserver) Note(string)                  {}
func (noObserver) Warn(string)                  {}
func (noObserver) Redact(text string) string    { return text }
func (noObserver) Progress(string) ops.Progress { return noObserver{} }
func (noObserver) Item(any)                     {}
func (noObserver) Attended() bool               { return false }
func (noObserver) Update(string)                {}
func (noObserver) Done()                        {}
