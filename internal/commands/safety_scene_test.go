package commands

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
	"sbx/internal/testkit/fake"
)

// scene is one run of one verb that would end sandboxes, three hours old and silent,
// unless a rule keeps them.
type scene struct {
	t    *testing.T
	b    *bench
	p    *editedProvider
	verb safety.Verb

	// What an arm may change before the verb is prepared.
	boxes   int    // how many there are to end
	labels  string // what they carry: key=value
	config  string // more of the configuration, since the verb was prepared
	word    bool   // terminate names them by bare words
	refused bool   // nobody allows the run
	kept    bool   // their tasks keep them
	claimed string // the task that the list has given them to
}

// editedProvider is a provider whose answers a test edits from the moment at which the verb that is
// proved begins.
type editedProvider struct {
	*fake.Provider

	mu         sync.Mutex
	edit       func(read int, s *sandbox.Sandbox) error // nil = nothing is edited
	incomplete bool                                     // its listing breaks off at the end
	reads      int                                      // listings and reads by id so far
	before     int                                      // of them, before the first request to end
	asked      int                                      // requests to end
}

func (p *editedProvider) read() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	return p.reads - 1
}

func (p *editedProvider) wasAsked() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked > 0
}

func (p *editedProvider) tell(read int, s sandbox.Sandbox) (sandbox.Sandbox, error) {
	if p.edit == nil {
		return s, nil
	}
	err := p.edit(read, &s)
	return s, err
}

func (p *editedProvider) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	read := p.read()
	s, err := p.Provider.Get(ctx, id)
	if err != nil {
		return s, err
	}
	return p.tell(read, s)
}

func (p *editedProvider) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	read := p.read()
	return func(yield func(sandbox.Sandbox, error) bool) {
		for s, err := range p.Provider.List(ctx, q) {
			if err == nil {
				s, err = p.tell(read, s)
			}
			if !yield(s, err) {
				return
			}
		}
		if p.incomplete {
			yield(sandbox.Sandbox{}, fault.New(fault.KindUnavailable, "page 2 is lost"))
		}
	}
}

func (p *editedProvider) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	p.mu.Lock()
	if p.asked++; p.asked == 1 {
		p.before = p.reads
	}
	p.mu.Unlock()
	return p.Provider.Terminate(ctx, id, o)
}

// profile is where the scene plays: drills have only this machine.
func (s *scene) profile() string {
	if s.verb == safety.VerbDrill {
		return "local"
	}
	return "prod"
}

func (s *scene) ids() []string {
	ids := make([]string, s.boxes)
	for i := range ids {
		ids[i] = fmt.Sprintf("box%05d", i+1)
	}
	return ids
}

// born is when the sandboxes of a scene began.
func born() time.Time { return noon.Add(-3 * time.Hour) }

// make makes sandboxes and, around them, 30 that no verb of the scene selects, so that no
// share of the fleet is large.
func (s *scene) make() {
	s.p = &editedProvider{Provider: fake.New(fake.Options{Name: s.profile(), Type: "local", Now: atNoon})}
	key, value, _ := strings.Cut(s.labels, "=")
	for _, id := range s.ids() {
		s.p.Add(fake.Seed{Sandbox: sandbox.Sandbox{
			ID: id, State: sandbox.StateRunning, CreatedAt: born(), StartedAt: born(), Activity: sandbox.False,
			Labels: map[string]string{key: value, "team": "agents", "sbx/drill": s.drill()},
		}})
	}
	for i := range 30 {
		young := noon.Add(-5 * time.Minute)
		s.p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: fmt.Sprintf("young%03d", i), State: sandbox.StateRunning, CreatedAt: young, StartedAt: young}})
	}
	s.b = newBench()
	s.b.members = []providers.Provider{s.p}
	s.b.configure(s.t, s.configuration(""))
}

// drill is the run of the drill that the sandboxes are of.
func (s *scene) drill() string {
	if s.verb == safety.VerbDrill {
		return "20261120t090000.000"
	}
	return ""
}

func (s *scene) configuration(more string) string {
	return "providers:\n  " + s.profile() + ": {type: local, owned: {labels: {team: agents}}}\n" + more
}

// play prepares the verb, arms the rule and runs the verb.
func (s *scene) play(arm func(*scene)) {
	s.make()
	run := s.prepare()
	if arm != nil {
		arm(s)
	}
	s.b.configureAnew(s.t, s.configuration(s.config))
	s.p.mu.Lock()
	s.p.reads, s.p.asked = 0, 0
	s.p.mu.Unlock()
	run()
}

// prepare does what lies before the run that is proved, and gives that run.
func (s *scene) prepare() (run func()) {
	switch s.verb {
	case safety.VerbTerminate, safety.VerbTerminatePiped, safety.VerbTerminateDelete:
		return s.terminate
	case safety.VerbCleanup:
		return func() { s.command("cleanup --older-than 1h") }
	case safety.VerbApply:
		plan := filepath.Join(s.t.TempDir(), "plan.json")
		require.Equal(s.t, 0, s.b.run(s.t, "cleanup --older-than 1h --out "+plan).code)
		return func() { s.command("cleanup --apply " + plan) }
	case safety.VerbResume:
		s.p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindAuth, "no right to")})
		require.NotEqual(s.t, 0, s.b.run(s.t, "cleanup --older-than 1h --yes").code)
		s.p.Mend()
		return func() { s.command("cleanup --resume " + s.b.runs(s.t)[0]) }
	case safety.VerbReconcile:
		s.orphans()
		return func() { s.command("reconcile --records store --fix") }
	case safety.VerbTask, safety.VerbKept:
		return s.sweep
	case safety.VerbDrill:
		return func() { s.b.run(s.t, "drill --clean") }
	}
	s.t.Fatalf("nobody plays %s", s.verb)
	return nil
}

// command runs a verb that needs to be allowed.
func (s *scene) command(line string) {
	if !s.refused {
		line += " --yes"
	}
	s.b.run(s.t, line)
}

func (s *scene) terminate() {
	words := make([]string, s.boxes)
	for i, id := range s.ids() {
		if words[i] = "prod/" + id; s.word {
			words[i] = id
		}
	}
	line := "terminate " + strings.Join(words, " ")
	switch s.verb {
	case safety.VerbTerminatePiped:
		s.b.stdin, line = strings.Join(words, "\n")+"\n", "terminate -"
	case safety.VerbTerminateDelete:
		line += " --delete"
	default:
	}
	s.command(line)
}

// orphans has an earlier run have seen the sandboxes without a record, beside others that
// have one.
func (s *scene) orphans() {
	kept := s.b.kept(atNoon)
	for i := range 30 {
		require.NoError(s.t, kept.PutRecord(s.t.Context(), store.Record{
			Provider: "prod", ID: fmt.Sprintf("young%03d", i), State: sandbox.StateRunning, CreatedAt: noon.Add(-5 * time.Minute), UpdatedAt: noon.Add(-5 * time.Minute),
		}))
	}
	for _, id := range s.ids() {
		_, err := kept.CountSeen(s.t.Context(), "reconcile orphan", "prod/"+id+" "+born().Format(time.RFC3339Nano), noon.Add(-earlier), time.Minute)
		require.NoError(s.t, err)
	}
}

// sweep settles what tasks have left: a task that was stopped and whose process is dead,
// or what a task has kept.
func (s *scene) sweep() {
	for _, id := range s.ids() {
		ref := sandbox.Ref{Provider: "prod", ID: id}
		keeps := task.Kept{Ref: ref, ExpiresAt: noon.Add(-time.Minute)}
		if s.kept || s.claimed != "" {
			keeps.ExpiresAt = noon.Add(time.Hour)
		}
		s.b.keeps = &task.KeepList{Store: s.b.kept(atNoon)}
		if s.verb == safety.VerbKept {
			require.NoError(s.t, s.b.keeps.Keep(s.t.Context(), keeps, "t-"+id))
			s.claim(ref)
			continue
		}
		s.task("t-"+id, id, func(n *task.Task) {
			n.Phase, n.Verdict, n.LeaseUntil = task.Stopping, task.Stopped, noon.Add(-time.Minute)
			if s.kept {
				n.Kept = &keeps
			}
		})
	}
	d, _ := s.b.assemble(process.Process{
		Args: []string{"sbx"}, Home: s.b.home, PID: 4711, Host: "cron-1", Now: atNoon, Environ: []string{"TERM=xterm"},
		Stdin: process.Stream{Reader: strings.NewReader("")}, Stdout: process.Stream{Writer: io.Discard}, Stderr: process.Stream{Writer: io.Discard},
	})
	p, err := d.Printer()
	require.NoError(s.t, err)
	f, err := d.Only(s.t.Context())
	require.NoError(s.t, err)
	require.NoError(s.t, d.WithTasks(s.t.Context(), ops.TaskParts{Fleet: f, Watch: p}, func(_ store.Store, o task.Options) error {
		d.SweepTasks(s.t.Context(), p, o)
		return nil
	}))
}

// claim has the list give a sandbox to a task that is at work, where there is one.
func (s *scene) claim(ref sandbox.Ref) {
	if s.claimed == "" {
		return
	}
	given, err := s.b.keeps.Claim(s.t.Context(), ref, s.claimed)
	require.NoError(s.t, err)
	require.True(s.t, given)
}

// task has a task at work in a sandbox.
func (s *scene) task(id, box string, edit func(*task.Task)) {
	ledger := task.Ledger{Store: s.b.kept(atNoon)}
	owner := task.Owner{Host: "elsewhere", PID: 7, Who: "ann"}
	work := task.New(id, "", task.Spec{Provider: "prod", Command: []string{"true"}, Attempts: 1}, owner, noon)
	_, _, err := ledger.Add(s.t.Context(), work)
	require.NoError(s.t, err)
	_, err = ledger.Change(s.t.Context(), id, func(n *task.Task) error {
		if err := n.Assign(owner, task.Attempt{Provider: "prod", Sandbox: box, Reused: true}); err != nil {
			return err
		}
		edit(n)
		return nil
	})
	require.NoError(s.t, err)
}
