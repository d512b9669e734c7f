package faults_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/launch"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/store"
	"sbx/internal/testkit/opstest"
	"sbx/internal/testkit/wiretest"
)

// ageLimit is that of the rule; the sandboxes of a world are 5 and 40 minutes old.
const ageLimit = 20 * time.Minute

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
	stuck    map[string]bool // does nothing
	young    string          // ours, and not selected before its age is reached
	aged     bool            // it is
	history  *keptSamples    // of earlier looks; nil = none is kept
	trace    []string        // what was done, for a failure
}

// newWorld makes three old sandboxes and three that no rule may end.
func newWorld(t *testing.T, c *cloud) *world {
	t.Helper()
	w := &world{t: t, c: c, dir: t.TempDir(), store: store.Memory(time.Now), requests: &keptRequests{all: map[sandbox.Ref]sandbox.EndRequest{}}, others: map[string]bool{}, named: map[string]bool{}}
	mine := map[string]string{sandbox.LabelOwner: "test"}
	for range 3 {
		w.old = append(w.old, c.add(2*ageLimit, mine))
	}
	w.young = c.add(ageLimit/4, mine)
	w.others[w.young] = true
	if c.owned == "" {
		w.others[c.add(2*ageLimit, map[string]string{sandbox.LabelOwner: "test", sandbox.LabelKeep: "true"})] = true
		w.others[c.add(2*ageLimit, nil)] = true
	}
	fields := []string{"type: " + c.kind.Name, "owned: " + cmp.Or(c.owned, "{labels: {"+sandbox.LabelOwner+": test}}")}
	for key, value := range c.settings {
		fields = append(fields, fmt.Sprintf("%s: %q", key, value))
	}
	text := "providers:\n  prod: {" + strings.Join(fields, ", ") + "}\nlimits: {max_fraction: 100%}\n"
	file := filepath.Join(w.dir, ".config", "sbx", "config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return w
}

// ids are all sandboxes of the world.
func (w *world) ids() []string { return append(slices.Sorted(maps.Keys(w.others)), w.old...) }

// mayEnd reports whether a rule may end a sandbox.
func (w *world) mayEnd(id string) bool {
	return slices.Contains(w.old, id) || id == w.young && w.aged
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
		Reporter: func() ops.Reporter { return noObserver{} }, Requests: w.requests,
	})
	env.Input = func() config.Input { return config.Input{Process: p, Types: types} }
	return env
}

// act is one use of the program.
type act struct {
	name string
	run  func(ctx context.Context, w *world) claim
}

// claim is what the program says of an act.
type claim struct {
	endings []sandbox.Ending
	verdict error // nil = exit 0
	ended   string
}

func (w *world) terminate(id string, del bool) act {
	return act{fmt.Sprintf("terminate %s delete=%t", id, del), func(ctx context.Context, w *world) claim {
		w.named[id] = true
		word := "prod/" + id
		got, err := end.Terminate(ctx, w.process(), end.TerminateRequest{Words: []string{word}, Typed: []string{word}, Delete: del, Yes: true}, noObserver{})
		if err != nil {
			return claim{verdict: err}
		}
		return claim{endings: got.Endings, verdict: firstError(got.Refused, got.Verdict)}
	}}
}

func (w *world) cleanup(del bool) act {
	return act{fmt.Sprintf("cleanup delete=%t", del), func(ctx context.Context, w *world) claim {
		rule := cleanup.Rule{Selector: selector.Selector{OlderThan: ageLimit}, IgnoreActivity: true, Delete: del}
		got, err := end.Cleanup(ctx, w.process(), end.CleanupRequest{Rule: rule, Yes: true}, noObserver{})
		if err != nil {
			return claim{verdict: err}
		}
		return claim{endings: got.Endings, verdict: firstError(got.Refused, got.Verdict)}
	}}
}

// cleanupStuck ends what the stuck rule finds, as cron does.
func (w *world) cleanupStuck() act {
	return act{"cleanup --stuck", func(ctx context.Context, w *world) claim {
		got, err := end.Cleanup(ctx, w.process(), end.CleanupRequest{Rule: cleanup.Rule{Selector: selector.Selector{Stuck: true}}, Yes: true}, noObserver{})
		if err != nil {
			return claim{verdict: err}
		}
		return claim{endings: got.Endings, verdict: firstError(got.Refused, got.Verdict)}
	}}
}

func (w *world) wait(id string) act {
	return act{"wait " + id, func(ctx context.Context, w *world) claim {
		ctx, stop := context.WithTimeout(ctx, 30*time.Second)
		defer stop()
		_, err := launch.Wait(ctx, w.process(), launch.WaitRequest{Word: "prod/" + id, Goal: fleet.GoalEnded}, noObserver{})
		if err != nil {
			return claim{verdict: err}
		}
		return claim{ended: id}
	}}
}

// die ends a sandbox without the program: another client has deleted it.
func (w *world) die(id string) act {
	return act{"another client ends " + id, func(ctx context.Context, w *world) claim {
		w.named[id] = true
		_ = open(w.t, w.c.kind, w.c.settings, w.c.server).Terminate(ctx, id, providers.TerminateOptions{}) // a lie may refuse it
		return claim{verdict: fault.New(fault.KindUnknown, "no claim")}
	}}
}

func (w *world) randomAct(r *rand.Rand) act {
	ids := w.ids()
	id := ids[r.IntN(len(ids))]
	switch r.IntN(7) {
	case 0, 1:
		return w.terminate(id, r.IntN(3) == 0)
	case 2, 3:
		return w.cleanup(r.IntN(3) == 0)
	case 4:
		return w.wait(id)
	case 5:
		return w.die(id)
	default:
		return act{"an hour passes", func(context.Context, *world) claim {
			time.Sleep(time.Hour) // in virtual time
			w.aged = true
			return claim{verdict: fault.New(fault.KindUnknown, "no claim")}
		}}
	}
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

func (noObserver) Note(string)                                         {}
func (noObserver) Warn(string)                                         {}
func (noObserver) Redact(text string) string                           { return text }
func (noObserver) Progress(string) ops.Progress                        { return noObserver{} }
func (noObserver) Item(any)                                            {}
func (noObserver) Attended() bool                                      { return false }
func (noObserver) Confirm(context.Context, ops.Question) (bool, error) { return false, nil }
func (noObserver) Update(string)                                       {}
func (noObserver) Done()                                               {}
