package commands

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

// earlier is how long ago an earlier run has looked: the clock of the bench stands
// still.
const earlier = 6 * time.Minute

// compared is a bench over one profile with one of each: in order, a ghost, an
// orphan and a leak, which an earlier run has seen.
func compared(t *testing.T) (*bench, *fake.Provider) {
	t.Helper()
	p := fake.New(fake.Options{Name: "local", Type: "local", Now: atNoon})
	p.Add(running("fine", 2*time.Hour), running("orphan", 2*time.Hour), running("leak", 2*time.Hour))
	b := newBench(p).configureNothing(t)
	kept := b.kept(atNoon)
	for id, state := range map[string]sandbox.State{"fine": sandbox.StateRunning, "ghost": sandbox.StateRunning, "leak": sandbox.StateTerminated} {
		require.NoError(t, kept.PutRecord(t.Context(), store.Record{
			Provider: "local", ID: id, TaskID: "t-" + id, State: state, CreatedAt: noon.Add(-3 * time.Hour), UpdatedAt: noon.Add(-time.Hour),
		}))
	}
	for kind, key := range map[string]string{"reconcile orphan": seenAs("orphan"), "reconcile leak": seenAs("leak")} {
		_, err := kept.CountSeen(t.Context(), kind, key, noon.Add(-earlier), time.Minute)
		require.NoError(t, err)
	}
	return b, p
}

// seenAs is the key under which a sandbox of the bench is kept among the sightings: its
// reference, and when it began.
func seenAs(id string) string {
	return "local/" + id + " " + noon.Add(-2*time.Hour).Format(time.RFC3339Nano)
}

const byStore = "reconcile --records store "

func TestReconcilePlansAsPromised(t *testing.T) {
	t.Parallel()
	b, p := compared(t)
	r := b.run(t, byStore+"-o json")
	require.Equal(t, 0, r.code, r.stderr)
	o := r.object(t)
	assert.Equal(t, true, o["complete"])
	assert.Equal(t, map[string]any{"record_only": 1.0, "real_only": 1.0, "differs": 1.0, "both": 1.0}, o["classes"])
	actions := map[any]any{}
	for _, item := range r.list(t, "items") {
		assert.ElementsMatch(t, strings.Fields("ref provider class cause action verdict record_state state age_seconds task_id observations reason diagnosis record_evidence real_evidence"), keysOf(item))
		actions[item["ref"]] = item["action"]
	}
	assert.Equal(t, map[any]any{"local/fine": "none", "local/ghost": "mark_terminated", "local/orphan": "report", "local/leak": "report"}, actions)
	assert.NotNil(t, o["plan"])
	assert.Empty(t, p.Calls(fake.OpTerminate))
	assert.Empty(t, b.written(t))
	assert.Contains(t, r.stderr, "Starting state reconciliation...")
	assert.Contains(t, r.stderr, "Reconciliation complete: 1 only on record, 1 only real, 1 differ, 1 on both sides")
	assert.Empty(t, b.run(t, byStore+"-q").stderr)
}

func TestReconcileCheckFindsAndCounts(t *testing.T) {
	t.Parallel()
	b, p := compared(t)
	r := b.run(t, byStore+"--check -o json")
	assert.Equal(t, 10, r.code)
	assert.Len(t, r.list(t, "errors"), 3)
	assert.Equal(t, true, r.object(t)["complete"])
	seen, err := b.store.SeenCounts(t.Context(), "reconcile orphan")
	require.NoError(t, err)
	assert.Equal(t, 2, seen[seenAs("orphan")].Count)
	assert.Empty(t, p.Calls(fake.OpTerminate))

	r = b.run(t, byStore+"--check -o nagios")
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.stdout, "SBX CRITICAL: local/ghost: ghost")
	r = b.run(t, byStore+"-o nagios")
	assert.Equal(t, 3, r.code)
	assert.Contains(t, r.stdout, "SBX UNKNOWN: reconcile without --check")
}

func TestReconcileFixActsOnWhatIsProved(t *testing.T) {
	t.Parallel()
	b, p := compared(t)
	r := b.run(t, byStore+"--fix --yes -o json")
	require.Equal(t, 0, r.code, r.stderr+r.stdout)
	outcomes := map[any]any{}
	for _, item := range r.list(t, "items") {
		assert.ElementsMatch(t, strings.Fields("ref outcome action class cause reason duration_seconds evidence"), keysOf(item))
		outcomes[item["ref"]] = item["outcome"]
	}
	assert.Equal(t, map[any]any{"local/ghost": "verified", "local/orphan": "verified", "local/leak": "verified"}, outcomes)
	lines := b.written(t)
	assert.Equal(t, []string{"begin", "intent", "result"}, lines[:3])
	assert.Len(t, lines, 10, "a mark, and two ends with the answer to each")
	assert.Len(t, p.Calls(fake.OpTerminate), 2)

	again := b.run(t, byStore+"--fix --yes -o json")
	assert.Equal(t, 0, again.code)
	assert.Empty(t, again.list(t, "items"))
	assert.Equal(t, 0, b.run(t, byStore+"--check").code)
}

func TestReconcileFixSaysEachLineToPeople(t *testing.T) {
	t.Parallel()
	b, _ := compared(t)
	r := b.run(t, byStore+"--fix --yes")
	assert.Contains(t, r.stdout, "verified local/ghost: mark_terminated, ghost\n")
	assert.Contains(t, r.stdout, "verified local/orphan: terminate, orphan\n")
	assert.Contains(t, r.stderr, "; 3 verified\n")
	b, _ = compared(t)
	assert.Contains(t, b.run(t, byStore+"--fix --yes --columns ref,outcome").stdout, "REF\tOUTCOME\n")
}

func TestReconcileFixAsksWhereItCan(t *testing.T) {
	t.Parallel()
	for answer, code := range map[string]int{"3\n": 0, "2\n": 11, "yes\n": 11, "": 11} {
		b, p := compared(t)
		b.tty, b.stdin = true, answer
		r := b.run(t, byStore+"--fix")
		assert.Equal(t, code, r.code, "%q: %s", answer, r.stderr)
		assert.Contains(t, r.stderr, "2 sandboxes would be terminated, 1 records marked")
		assert.Equal(t, code == 0, len(p.Calls(fake.OpTerminate)) == 2)
	}
	b, p := compared(t)
	r := b.run(t, byStore+"--fix -o json")
	assert.Equal(t, 11, r.code)
	assert.Empty(t, p.Calls(), "nothing was called")
	assert.Equal(t, "refused", r.list(t, "errors")[0]["kind"])
}

func TestReconcileKeepsToItsGuards(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		yaml, flags string
		code, ended int
	}{
		"a limit by flag":         {"", "--max-delete 1", 11, 0},
		"the flag over the file":  {"limits: {max_delete: 1}", "--max-delete 2", 0, 2},
		"production, named":       {"production: [local]", "--production local", 0, 2},
		"a longer grace":          {"", "--grace 7m", 0, 0},
		"more looks":              {"", "--observations 3", 0, 0},
		"a longer time to record": {"", "--create-grace 3h", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := compared(t)
			b.configure(t, c.yaml)
			r := b.run(t, byStore+"--fix --yes "+c.flags)
			assert.Equal(t, c.code, r.code, r.stderr)
			assert.Len(t, p.Calls(fake.OpTerminate), c.ended)
		})
	}
}

func TestReconcileFixFailsClosed(t *testing.T) {
	t.Parallel()
	b, p := compared(t)
	require.NoError(t, os.WriteFile(filepath.Join(b.home, "runs"), nil, 0o600)) // no folder can be there
	r := b.run(t, byStore+"--fix --yes -o json")
	assert.Equal(t, 1, r.code, r.stderr)
	assert.Contains(t, r.stdout, "the journal cannot be written")
	assert.Empty(t, p.Calls(fake.OpTerminate))

	b, p = compared(t)
	b.context = canceled
	r = b.run(t, byStore+"--fix --yes -o json")
	assert.Equal(t, 130, r.code, r.stdout)
	assert.Empty(t, p.Calls(fake.OpTerminate))

	b, _ = compared(t)
	b.adjust = func(d *Deps) {
		d.Store = func(bool) (store.Store, error) { return nil, fault.New(fault.KindUnavailable, "no store") }
	}
	assert.Equal(t, 7, b.run(t, byStore+"--check").code)
}

// TestReconcileFixThatIsTerminated is recorded with the signal that ended it, whatever
// else went wrong.
func TestReconcileFixThatIsTerminated(t *testing.T) {
	t.Parallel()
	b, p := compared(t)
	other := fake.New(fake.Options{Name: "prod", Now: atNoon})
	other.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
	b.members = append(b.members, other)
	p.Break(fake.Fault{Op: fake.OpTerminate, ID: "orphan", Hang: true})
	b.context = func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { cancel(fault.New(fault.KindTerminated, "interrupted by SIGTERM")) })
		return ctx
	}
	r := b.run(t, byStore+"--fix --yes -o json")
	assert.Equal(t, 143, r.code, r.stdout)
	run, ok := r.object(t)["run_id"].(string)
	require.True(t, ok)
	h, err := runs.ReadRun(journal.Dir(filepath.Join(b.home, "runs")), run)
	require.NoError(t, err)
	assert.Equal(t, 143, h.ExitCode())
}

func TestReconcileFixGoesOnAndCountsWhatFailed(t *testing.T) {
	t.Parallel()
	b, p := compared(t)
	p.Break(fake.Fault{Op: fake.OpTerminate, ID: "orphan", Err: fault.New(fault.KindAuth, "403")})
	r := b.run(t, byStore+"--fix --yes -o json")
	assert.Equal(t, 3, r.code)
	assert.Contains(t, r.stdout, `"verified": 2,`)
	assert.Len(t, r.list(t, "errors"), 1)
}

// TestWhatReconcileAdvisesWorks: the command in the hint about empty records does put
// sandboxes on record that no label calls ours.
func TestWhatReconcileAdvisesWorks(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "cloud", Now: atNoon})
	p.Add(running("aaaa", 2*time.Hour), running("bbbb", 2*time.Hour))
	b := newBench(p)
	b.home, b.env, b.types = t.TempDir(), []string{"CLOUD_KEY=k"}, []providers.Type{{Name: "cloud", SwitchedOn: []string{"CLOUD_KEY"}}}
	empty := b.run(t, "reconcile --records store")
	require.Equal(t, 11, empty.code, empty.stderr)
	_, hint, found := strings.Cut(empty.stderr, "record them: `sbx ")
	require.True(t, found, empty.stderr)
	line, _, _ := strings.Cut(hint, "`")
	r := b.run(t, line+" --yes -o json")
	assert.Contains(t, r.stdout, "`sbx config own --provider cloud --all` declares that all of this profile is yours")
	require.Equal(t, 0, b.run(t, "config own --provider cloud --all").code)
	r = b.run(t, line+" --yes -o json")
	assert.Equal(t, 0, r.code, r.stderr)
	records, err := b.store.Records(t.Context(), "cloud")
	require.NoError(t, err)
	assert.Len(t, records, 2, r.stdout)
}

func TestReconcileShowsPeopleWhatWantsAttention(t *testing.T) {
	t.Parallel()
	b, _ := compared(t)
	b.tty, b.width = true, 120
	r := b.run(t, byStore+"--max-delete 1 --no-color")
	golden(t, "reconcile-page", r.stdout)
	assert.NotContains(t, r.stdout, "local/fine", "what agrees is a number")
}

func TestReconcileReadsItsFlagsFirst(t *testing.T) {
	t.Parallel()
	dumped := filepath.Join(t.TempDir(), "tasks.csv")
	require.NoError(t, os.WriteFile(dumped, []byte("id\n"), 0o600))
	for _, line := range []string{
		"--check --fix", "--yes", "--records elsewhere", "--records tasks:" + dumped, "--records tasks:", "--records tasks:/no/such.csv",
		"--grace 5", "--create-grace -1s", "--max-records-age 0s", "--observations 1", "--max-delete 0", "--max-fraction 25", "--max-fraction 101%",
		"--production nowhere", "--wait x", "--columns nothing", "surplus",
	} {
		b, p := compared(t)
		r := b.run(t, "reconcile --provider local "+line)
		assert.Equal(t, 2, r.code, "%s: %s", line, r.stderr)
		assert.Empty(t, r.stdout, line)
		assert.Empty(t, p.Calls(), line)
	}
	b, p := compared(t)
	assert.Equal(t, 9, b.run(t, byStore+"--write-records").code)
	assert.Empty(t, p.Calls())
}
