package reconcile_test

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
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
	"sbx/internal/triage"
)

// noon is when every test begins.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// scene is one profile, `prod`, with its records, and everything that an engine needs.
type scene struct {
	now        time.Time
	prod       *fake.Provider
	records    []reconcile.Record
	readings   int // of the records so far
	later      func(reading int) []reconcile.Record
	failing    func(reading int) error
	source     reconcile.Source
	rules      reconcile.Rules
	seenCounts store.SeenCountStore
	journal    *journal
	limits     reconcile.Limits
	marked     []sandbox.Ref
	adopted    []sandbox.Ref
	others     []*fake.Provider
	requests   fleet.EndRequests
	called     map[string]string        // further names for reads by id
	denied     map[string]sandbox.State // what a read by id says, and no list does
}

func newScene() *scene {
	s := &scene{now: noon, seenCounts: store.Memory(nil), journal: &journal{}}
	s.prod = fake.New(fake.Options{Name: "prod", Now: s.clock})
	s.limits = reconcile.Limits{Limits: safety.Limits{MaxDelete: 20, MaxFraction: 25}, RecordsAge: time.Hour}
	s.rules = reconcile.Rules{
		Observations: 2, Grace: 5 * time.Minute, CreateGrace: 10 * time.Minute, RecordsAge: time.Hour, Observe: true,
		Protected: func(b sandbox.Sandbox) string {
			if b.Labels[sandbox.LabelKeep] == "true" {
				return "protected"
			}
			return ""
		},
		Owned:      func(_ string, labels map[string]string) bool { return labels["team"] != "others" },
		Thresholds: func(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() },
	}
	s.source = reconcile.Source{Name: "records", Read: s.read, Mark: s.mark, Adopt: s.adopt}
	return s
}

func (s *scene) clock() time.Time { return s.now }

func (s *scene) pass(d time.Duration) *scene {
	s.now = s.now.Add(d)
	return s
}

func (s *scene) read(context.Context) iter.Seq2[reconcile.Record, error] {
	return func(yield func(reconcile.Record, error) bool) {
		s.readings++
		rows := s.records
		if s.later != nil {
			rows = s.later(s.readings)
		}
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
		if s.failing != nil {
			if err := s.failing(s.readings); err != nil {
				yield(reconcile.Record{}, err)
			}
		}
	}
}

func (s *scene) mark(_ context.Context, ref sandbox.Ref, _ string) error {
	s.marked = append(s.marked, ref)
	for i := range s.records {
		if s.records[i].SandboxID == ref.ID {
			s.records[i].Live = sandbox.False
		}
	}
	return nil
}

func (s *scene) adopt(_ context.Context, b sandbox.Sandbox) error {
	s.adopted = append(s.adopted, b.Ref())
	s.records = append(s.records, recorded(b.ID, sandbox.True))
	return nil
}

func (s *scene) engine(t *testing.T) *reconcile.Engine {
	t.Helper()
	members := []fleet.Member{{Provider: calledOtherwise{s.prod, s.called, s.denied}}}
	sources := map[string]reconcile.Source{"prod": s.source}
	for _, p := range s.others {
		members = append(members, fleet.Member{Provider: p})
		sources[p.Name()] = s.source
	}
	e, err := reconcile.New(reconcile.Engine{
		Fleet: fleet.New(members, fleet.Options{Now: s.clock, Sample: time.Millisecond, EndRequests: s.requests, Poll: fleet.Poll{Min: time.Millisecond, Max: time.Millisecond}}),
		Now:   s.clock, Rules: s.rules, SeenCounts: s.seenCounts, Sources: sources,
	})
	require.NoError(t, err)
	return e
}

func (s *scene) plan(t *testing.T) reconcile.Plan {
	t.Helper()
	return s.engine(t).Plan(t.Context())
}

// proved plans twice, Grace apart.
func (s *scene) proved(t *testing.T) reconcile.Plan {
	t.Helper()
	s.plan(t)
	return s.pass(s.rules.Grace).plan(t)
}

func (s *scene) how() reconcile.How {
	return reconcile.How{Limits: s.limits, Record: &runs.Writer{Journal: s.journal}, Wait: 50 * time.Millisecond, By: "test"}
}

// fix carries a plan out.
func (s *scene) fix(t *testing.T, plan reconcile.Plan) []reconcile.Done {
	t.Helper()
	seq, err := s.engine(t).Fix(t.Context(), plan, s.how())
	require.NoError(t, err)
	var all []reconcile.Done
	for d := range seq {
		all = append(all, d)
	}
	return all
}

// asked is how many ends were requested.
func (s *scene) asked() int { return len(s.prod.Calls(fake.OpTerminate)) }

// box adds a running sandbox that has been silent for its whole age.
func (s *scene) box(id string, age time.Duration, edits ...func(*sandbox.Sandbox)) {
	b := sandbox.Sandbox{ID: id, State: sandbox.StateRunning, CreatedAt: s.now.Add(-age), StartedAt: s.now.Add(-age)}
	for _, edit := range edits {
		edit(&b)
	}
	s.prod.Add(fake.Seed{Sandbox: b})
}

func (s *scene) on(records ...reconcile.Record) *scene {
	s.records = append(s.records, records...)
	return s
}

// recorded is a record of two hours ago.
func recorded(id string, live sandbox.Verdict) reconcile.Record {
	word := map[sandbox.Verdict]string{sandbox.True: "running", sandbox.False: "completed", sandbox.Unknown: "odd"}[live]
	return reconcile.Record{Record: providers.Record{
		SandboxID: id, TaskID: "t-" + id, RawState: word, Live: live, CreatedAt: noon.Add(-2 * time.Hour), UpdatedAt: noon.Add(-time.Minute),
	}}
}

func state(to sandbox.State) func(*sandbox.Sandbox) {
	return func(b *sandbox.Sandbox) {
		b.State = to
		if to.Ended() {
			b.EndedAt = noon.Add(-time.Minute)
		}
	}
}

func label(key, value string) func(*sandbox.Sandbox) {
	return func(b *sandbox.Sandbox) { b.Labels = map[string]string{key: value} }
}

// only returns the one row of a sandbox.
func only(t *testing.T, p reconcile.Plan, id string) reconcile.Row {
	t.Helper()
	var found []reconcile.Row
	for _, r := range p.Rows {
		if r.Ref.ID == id {
			found = append(found, r)
		}
	}
	require.Len(t, found, 1, "rows of %s: %v", id, p.Rows)
	return found[0]
}

// calledOtherwise is a provider that accepts further names of its sandboxes, as Daytona
// accepts names and Vercel sessions.
type calledOtherwise struct {
	*fake.Provider

	words  map[string]string
	states map[string]sandbox.State // what a read by id says, by the id, and no list does
}

// Get reads one by its id or a name.
func (c calledOtherwise) Get(ctx context.Context, word string) (sandbox.Sandbox, error) {
	if id, known := c.words[word]; known {
		word = id
	}
	s, err := c.Provider.Get(ctx, word)
	s.State = cmp.Or(c.states[s.ID], s.State)
	return s, err
}

// TakesName is true for the names.
func (c calledOtherwise) TakesName(word string) bool { return c.words[word] != "" }

// journal keeps lines in memory; its lines can be made to fail.
type journal struct {
	mu    sync.Mutex
	lines []string
	fail  map[string]bool // by kind
	hook  func(kind string, data any)
}

var errDisk = errors.New("no space left on device")

func (j *journal) Append(kind string, data any) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.hook != nil {
		j.hook(kind, data)
	}
	if j.fail[kind] {
		return errDisk
	}
	switch line := data.(type) {
	case runs.Intent:
		j.lines = append(j.lines, kind+" "+line.Ref.String()+" "+line.Action)
	case runs.Result:
		j.lines = append(j.lines, kind+" "+line.Ref.String()+" "+string(line.Outcome))
	}
	return nil
}
