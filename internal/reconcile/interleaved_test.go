package reconcile_test

import (
	"context"
	"iter"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/reconcile"
	"sbx/internal/runs"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/schedule"
	"sbx/internal/triage"
)

// twins is the scene: one profile with a sandbox on record ("kept"), an orphan that was
// seen six minutes ago ("seen"), and one that was never seen ("new"). Two reconciles --fix
// start at the same moment, without the lock that normally excludes them, as after a lease
// that one of them has slept through.
type twins struct {
	*scheduler

	prod    *fake.Provider
	store   *store.InMemory
	looks   map[string][]time.Time // of suspects, the time of each complete observation
	mistake string
}

// seat is the connections of one process.
type seat struct {
	*fake.Provider

	w *twins
	p *reconciler
}

func (s seat) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return read(s.w.scheduler, s.p, "list", func() {}, func() iter.Seq2[sandbox.Sandbox, error] { return s.Provider.List(ctx, q) })
}

func (s seat) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	if err := s.w.gate(s.p, "get "+id, false); err != nil {
		return sandbox.Sandbox{}, err
	}
	s.w.mu.Lock()
	s.p.gets[id] = time.Now()
	s.w.mu.Unlock()
	return s.Provider.Get(ctx, id)
}

func (s seat) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	if err := s.w.gate(s.p, "terminate "+id, true); err != nil {
		return err
	}
	s.w.judge(s.p, id)
	return s.Provider.Terminate(ctx, id, o)
}

// VerifyEnd and Activity return what is known already; they add no schedule.
func (s seat) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	return s.Provider.VerifyEnd(ctx, id, q)
}

func (s seat) records(context.Context) iter.Seq2[reconcile.Record, error] {
	return read(s.w.scheduler, s.p, "records", func() { s.p.records = time.Now() }, func() iter.Seq2[reconcile.Record, error] {
		return func(yield func(reconcile.Record, error) bool) {
			_ = yield(recorded("kept", is), nil) && yield(recorded("over", isNot), nil)
		}
	})
}

func (s seat) CountSeen(ctx context.Context, kind, key string, at time.Time, apart time.Duration) (store.SeenCount, error) {
	cause, id := strings.TrimPrefix(kind, "reconcile "), sighted(key)
	if err := s.w.gate(s.p, "sight "+cause+"/"+id, true); err != nil {
		return store.SeenCount{}, err
	}
	s.w.mu.Lock()
	if look := s.p.gets[id]; s.p.whole { // an observation is as old as the older of its two sides
		if s.p.records.Before(look) {
			look = s.p.records
		}
		s.w.looks[id] = append(s.w.looks[id], look)
	}
	s.w.mu.Unlock()
	seen, err := s.w.store.CountSeen(ctx, kind, key, at, apart)
	if s.w.mistake == "one look proves an orphan" {
		seen.Count++
	}
	return seen, err
}

func (s seat) Forget(ctx context.Context, kind, key string) error {
	if err := s.w.gate(s.p, "forget "+strings.TrimPrefix(kind, "reconcile ")+"/"+sighted(key), true); err != nil {
		return err
	}
	return s.w.store.Forget(ctx, kind, key)
}

func (s seat) SeenCounts(ctx context.Context, kind string) (map[string]store.SeenCount, error) {
	if err := s.w.gate(s.p, "sightings "+strings.TrimPrefix(kind, "reconcile "), false); err != nil {
		return nil, err
	}
	return s.w.store.SeenCounts(ctx, kind)
}

// sighted is the id in a key of the sightings.
func sighted(key string) string {
	ref, _, _ := strings.Cut(key, " ")
	_, id, _ := strings.Cut(ref, "/")
	return id
}

// judge checks a request to end against the rules by the true state, without the engine.
func (w *twins) judge(p *reconciler, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	apart := slices.ContainsFunc(w.looks[id], func(a time.Time) bool {
		return slices.ContainsFunc(w.looks[id], func(b time.Time) bool { return b.Sub(a) >= reconcile.DefaultGrace })
	})
	for rule, broken := range map[string]bool{
		"it is on record":                   id == "kept",
		"a list of this process has broken": !p.whole,
		"it was seen once":                  !apart,
	} {
		if broken {
			w.wrong = append(w.wrong, p.name+" ends "+id+": "+rule)
		}
	}
}

// engine is the real one, with the connections of this process.
func (w *twins) engine(p *reconciler) (*reconcile.Engine, error) {
	at := seat{w.prod, w, p}
	return reconcile.New(reconcile.Engine{
		Fleet: fleet.New([]fleet.Member{{Provider: at, Timeout: time.Hour}}, fleet.Options{}), Now: time.Now, SeenCounts: at,
		Rules: reconcile.Rules{
			Observations: reconcile.MinObservations, Grace: reconcile.DefaultGrace, CreateGrace: reconcile.DefaultCreateGrace,
			RecordsAge: time.Hour, Observe: true, Protected: func(sandbox.Sandbox) string { return "" },
			Owned:      func(string, map[string]string) bool { return true },
			Thresholds: func(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() },
		},
		Sources: map[string]reconcile.Source{"prod": {Name: "records", Read: at.records}},
	})
}

// reconcile is `reconcile --fix --yes` of one process.
func (w *twins) reconcile(ctx context.Context, p *reconciler) {
	e, err := w.engine(p)
	if err != nil {
		panic(err)
	}
	plan := e.Plan(ctx)
	done, err := e.Fix(ctx, plan, reconcile.How{Limits: reconcile.Limits{Limits: safety.Limits{MaxDelete: 20, MaxFraction: 100}, RecordsAge: time.Hour}, Record: &runs.Writer{Journal: &journal{}}, Wait: time.Second})
	if err != nil {
		return // a guard refuses
	}
	for range done {
		continue
	}
}

// idle is the usage of a program that does nothing.
func idle(now time.Time) sandbox.Usage { return sandbox.Usage{At: now, CPUSeconds: new(0.0)} }

// playTwins plays one path and returns what it broke; false where it is equivalent to
// another.
func playTwins(t *testing.T, c *schedule.Choices, mistake string) (w *twins, whole bool) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		w = &twins{scheduler: &scheduler{c: c}, prod: fake.New(fake.Options{Name: "prod"}), store: store.Memory(nil), looks: map[string][]time.Time{}, mistake: mistake}
		born := time.Now().Add(-time.Hour)
		for _, id := range []string{"kept", "new", "seen"} {
			w.prod.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: id, CreatedAt: born, StartedAt: born, LastActivityAt: born}, Usage: idle})
		}
		before := time.Now()
		key := "prod/seen " + born.UTC().Format(time.RFC3339Nano)
		if _, err := w.store.CountSeen(context.Background(), //nolint:usetesting // it lives in the bubble
			"reconcile orphan", key, before, reconcile.DefaultGrace); err != nil {
			panic(err)
		}
		w.looks["seen"] = []time.Time{before}
		time.Sleep(freezeFor)
		for _, name := range []string{"A", "B"} {
			ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // it lives in the bubble
			p := &reconciler{name: name, cancel: cancel, gets: map[string]time.Time{}, whole: true}
			w.procs = append(w.procs, p)
			go func() {
				defer cancel()
				w.reconcile(ctx, p)
				w.mu.Lock()
				p.done = true
				w.mu.Unlock()
			}()
		}
		whole = w.play()
	})
	return w, whole
}

// The bound on the depth of a path, in choices. No path of this scene is longer; the test
// fails if one is.
const twinsDepth = 120

// twinsShares is the number of shares of the tree; `go test` plays one of them,
// SBX_SCHEDULES=N that many, SBX_SCHEDULES=all every path.
const twinsShares = 256

// exploreTwins plays the chosen shares, logs how many schedules were complete and how many
// were cut as equivalent, and returns the first that breaks a rule; nil = none does.
func exploreTwins(t *testing.T, shares int, mistake string) (broken *twins, path string) {
	t.Helper()
	whole, cut, deepest := 0, 0, 0
	for share := range shares {
		b := schedule.Bounds{Depth: twinsDepth, Share: share, Shares: twinsShares, SplitDepth: 8}
		if shares == twinsShares {
			b.Shares = 1
		}
		schedule.Explore(b, func(c *schedule.Choices) bool {
			w, all := playTwins(t, c, mistake)
			deepest = max(deepest, len(strings.Split(c.String(), ".")))
			if !all {
				cut++
				return true
			}
			whole++
			if len(w.wrong) > 0 {
				broken, path = w, c.String()
			}
			return broken == nil
		})
		if broken != nil || shares == twinsShares {
			break
		}
	}
	require.Less(t, deepest, twinsDepth, "the bound cuts paths off")
	t.Logf("%d schedules, %d more cut short as equivalent to one of them, the longest of %d choices", whole, cut, deepest)
	return broken, path
}

// TestTwoReconcilesInEveryOrder plays every interleaving of the calls of two reconciles,
// with at most one freeze of six minutes, one crash and one failing list. SBX_SCHEDULE=PATH
// replays one path and prints it.
func TestTwoReconcilesInEveryOrder(t *testing.T) {
	t.Parallel()
	if path := os.Getenv("SBX_SCHEDULE"); path != "" {
		c, err := schedule.Replay(path)
		require.NoError(t, err)
		w, _ := playTwins(t, c, "")
		t.Log(strings.Join(w.trail, "\n"))
		require.Empty(t, w.wrong)
		return
	}
	shares := twinsShares
	if os.Getenv("SBX_SCHEDULES") != "all" {
		shares = min(schedule.Number(t, "SBX_SCHEDULES", 1), twinsShares-1)
	}
	broken, path := exploreTwins(t, shares, "")
	if broken != nil {
		t.Fatalf("%s\nreplay it with SBX_SCHEDULE=%s go test -run '^TestTwoReconcilesInEveryOrder$' -v ./internal/reconcile\n%s",
			strings.Join(broken.wrong, "\n"), path, strings.Join(broken.trail, "\n"))
	}
}

// TestAPlantedMistakeIsFoundByOrder: a suspect that was observed once is ended.
func TestAPlantedMistakeIsFoundByOrder(t *testing.T) {
	t.Parallel()
	broken, _ := exploreTwins(t, 1, "one look proves an orphan")
	require.NotNil(t, broken)
	require.Contains(t, strings.Join(broken.wrong, "\n"), "it was seen once")
}
