package commands

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
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

const onlyProd = "providers:\n  prod: {type: local}\n"

func herdBench(t *testing.T, n int) (*bench, *fake.Provider) {
	t.Helper()
	b, p := oneFake(quietHerd("prod", n)...)
	return b.configure(t, onlyProd), p
}

// runs names the journals of a bench.
func (b *bench) runs(t *testing.T) []string {
	t.Helper()
	runs, err := journal.Runs(journal.Dir(filepath.Join(b.home, "runs")))
	require.NoError(t, err)
	return runs
}

func TestCleanupFlagsThatContradict(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"--older-than 10m --every 5m":                           "--every needs --yes",
		"--older-than 10m --every 5m --yes --explain prod/aaaa": "--yes has no meaning",
		"--every 5m --yes --resume r-1":                         "--every needs --yes",
		"--older-than 10m --yes --listen 127.0.0.1:0":           "unknown flag --listen",
		"--older-than 10m --notify-before 10m":                  "unknown flag --notify-before",
		"--older-than 10m --yes --out plan.json":                "--yes has no meaning",
		"--out plan.json --apply plan.json":                     "exclude each other",
		"--apply plan.json --older-than 10m":                    "has its own rule",
		"--older-than 10m --production nowhere":                 "no profile",
	} {
		b, p := herdBench(t, 1)
		r := b.run(t, "cleanup "+line)
		assert.Equal(t, 2, r.code, line)
		assert.Contains(t, r.stderr, says, line)
		assert.Empty(t, p.Calls(), line)
	}
}

func TestAPlanWithoutAFolderSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b, _ := herdBench(t, 1)
	r := b.run(t, "cleanup --older-than 10m --out "+filepath.Join(b.home, "not", "there", "plan.json"))
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "sbx: hint: check that the folder exists")
}

// TestGuardsOfAPlanCountWhatThePlanCanEnd, and not what has come since.
func TestGuardsOfAPlanCountWhatThePlanCanEnd(t *testing.T) {
	t.Parallel()
	b, p := herdBench(t, 4)
	plan := filepath.Join(b.home, "plan.json")
	require.Equal(t, 0, b.run(t, "cleanup --older-than 10m --out "+plan).code)
	p.Add(quietHerd("late", 30)...)
	r := b.run(t, "cleanup --yes --apply "+plan)
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Len(t, p.Calls(fake.OpTerminate), 4)
}

func TestATerminalMayAllowAPlan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line, answer string
		asked        int
	}{
		"the count":               {"cleanup --older-than 10m --max-fraction 100%", "4\n", 4},
		"y, and they run":         {"cleanup --older-than 10m --max-fraction 100%", "y\n", 0},
		"another count":           {"cleanup --older-than 10m --max-fraction 100%", "5\n", 0},
		"nothing":                 {"cleanup --older-than 10m --max-fraction 100%", "", 0},
		"no rule was spelled out": {"cleanup --max-fraction 100%", "4\n", 0},
		"a guard says no":         {"cleanup --older-than 10m --max-delete 3", "4\n", 0},
		"a plan is written":       {"cleanup --older-than 10m --out plan.json", "4\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := herdBench(t, 4)
			b.tty, b.stdin, b.workdir = true, tc.answer, b.home
			r := b.run(t, tc.line)
			assert.Equal(t, 0, r.code, r.stderr)
			assert.Len(t, p.Calls(fake.OpTerminate), tc.asked, r.stderr)
		})
	}
}

func TestWhatIsNotResumed(t *testing.T) {
	t.Parallel()
	b, p := herdBench(t, 4)
	require.Equal(t, 11, b.run(t, tenMinutes+" --max-delete 1").code)
	r := b.run(t, "cleanup --yes --resume "+b.runs(t)[0])
	assert.Equal(t, 11, r.code)
	assert.Contains(t, r.stderr, "was refused and terminated nothing")
	assert.Empty(t, p.Calls(fake.OpTerminate))

	b, p = compared(t)
	b.run(t, byStore+"--fix --yes")
	ended := len(p.Calls(fake.OpTerminate))
	r = b.run(t, "cleanup --yes --resume "+b.runs(t)[0])
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.stderr, "is a run of reconcile")
	assert.Len(t, p.Calls(fake.OpTerminate), ended)
}

// TestARunOfReconcileIsShownLikeAnyOther: two rooms write into journals, and one reads.
func TestARunOfReconcileIsShownLikeAnyOther(t *testing.T) {
	t.Parallel()
	b, _ := compared(t)
	require.Equal(t, 0, b.run(t, byStore+"--fix --yes").code)
	r := b.run(t, "cleanup show "+b.runs(t)[0]+" -o json")
	require.Equal(t, 0, r.code, r.stderr)
	items := r.list(t, "items")
	require.Len(t, items, 3)
	for _, item := range items {
		assert.Equal(t, "verified", item["outcome"])
		assert.NotEmpty(t, item["evidence"])
		before, ok := item["before"].(map[string]any)
		require.True(t, ok)
		assert.Equal(t, item["ref"], before["ref"])
	}
	assert.Equal(t, []any{}, r.object(t)["guards"], "a list is never null")
	assert.Equal(t, map[string]any{}, r.object(t)["kept"])
}

// runWatcher is a shared store that tells which runs were put into it.
type runWatcher struct {
	store.Store

	put []store.Run
}

func (w *runWatcher) PutRun(ctx context.Context, run store.Run) error {
	w.put = append(w.put, run)
	return w.Store.PutRun(ctx, run)
}

// TestRunsOfOtherHostsStandBesideOurs, each once, with their sums.
func TestRunsOfOtherHostsStandBesideOurs(t *testing.T) {
	t.Parallel()
	b, _ := herdBench(t, 4)
	shared := &runWatcher{Store: store.Memory(time.Now)}
	b.shared = shared
	require.Equal(t, 11, b.run(t, tenMinutes+" --max-delete 1").code)
	require.Len(t, shared.put, 2, "as it began and as it ended")
	assert.True(t, shared.put[0].EndedAt.IsZero())
	assert.False(t, shared.put[1].Acted, "it was refused")
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	require.Len(t, shared.put, 4)
	assert.Equal(t, 4, shared.put[3].Counts["verified"])
	assert.Equal(t, []string{"prod"}, shared.put[3].Profiles)

	here := b.run(t, "cleanup runs -o json").list(t, "items")
	require.Len(t, here, 2, "each once")
	elsewhere, _ := herdBench(t, 0)
	elsewhere.shared = shared
	require.NoError(t, shared.PutRun(t.Context(), store.Run{ID: "r-other", Verb: runs.VerbReconcile, StartedAt: noon, Acted: true}))
	there := elsewhere.run(t, "cleanup runs -o json").list(t, "items")
	require.Len(t, there, 2, "reconcile is another verb")
	for i := range there {
		for _, key := range []string{"run_id", "host", "selected", "exit_code"} {
			assert.Contains(t, []any{here[0][key], here[1][key]}, there[i][key], key)
		}
		assert.InDelta(t, 4, there[i]["selected"], 0)
		assert.Equal(t, false, there[i]["resumable"], "the journal stays with the host that acted")
	}
	assert.Equal(t, "true", elsewhere.run(t, "cleanup status -o json").item(t)["verdict"], "the refused one is no success, the other is")
}

func TestARecordEndsWithItsSandbox(t *testing.T) {
	t.Parallel()
	b, p := herdBench(t, 4)
	b.adjust = nil
	kept := b.kept(atNoon)
	require.NoError(t, kept.PutRecord(t.Context(), store.Record{Provider: "prod", ID: "prod0001", State: sandbox.StateRunning, CreatedAt: noon.Add(-time.Hour)}))
	b.members[0] = withoutRecords{b.members[0], p}
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	records, err := kept.Records(t.Context(), "prod")
	require.NoError(t, err)
	require.Len(t, records, 1)
	assert.Equal(t, sandbox.StateTerminated, records[0].State)
}

// withoutRecords hides every ability of a provider but one.
type withoutRecords struct {
	providers.Provider
	providers.ActivityReader
}

// TestARunWithoutItsLastLine is no success, although all of it was done.
func TestARunWithoutItsLastLine(t *testing.T) {
	t.Parallel()
	b, p := herdBench(t, 1)
	b.adjust = func(d *Deps) { d.Journals = func() (journal.Disk, error) { return fullAfter{&full{left: 3}}, nil } }
	r := b.run(t, tenMinutes+" -o json")
	assert.Equal(t, 1, r.code, r.stdout)
	assert.Len(t, p.Calls(fake.OpTerminate), 1)
}

// TestPressureLeavesNoProfileOut of the record: one that cannot tell is an error beside
// the others.
func TestPressureLeavesNoProfileOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		used := 9.0
		quotas := []providers.Quota{{Name: "concurrent sandboxes", Unit: "sandboxes", Used: &used, Limit: new(10.0)}}
		prod := fake.New(fake.Options{Name: "prod", Now: atNoon, Quotas: quotas})
		other := fake.New(fake.Options{Name: "other", Now: atNoon, Quotas: quotas})
		prod.Add(quietHerd("prod", 4)...)
		other.Break(fake.Fault{Op: fake.OpQuota, Err: fault.New(fault.KindAuth, "403")})
		b := newBench(prod, other).configure(t, twoProfiles)
		r := b.run(t, tenMinutes+" --if-usage-above 80% -o json")
		assert.Equal(t, 3, r.code, r.stderr)
		assert.Len(t, prod.Calls(fake.OpTerminate), 4)
		assert.Len(t, r.list(t, "errors"), 1)
		assert.Equal(t, false, r.object(t)["complete"])
		h, err := runs.ReadRun(journal.Dir(filepath.Join(b.home, "runs")), b.runs(t)[0])
		require.NoError(t, err)
		assert.Equal(t, []string{"prod", "other"}, h.Profiles())
	})
}

// TestALayerIsInOrderByItsOwnRuns: the success of one does not stand for another.
func TestALayerIsInOrderByItsOwnRuns(t *testing.T) {
	t.Parallel()
	b, _ := herdBench(t, 4)
	file := filepath.Join(b.home, "sbx.prom")
	require.Equal(t, 0, b.run(t, tenMinutes).code) // of the layer "age"
	require.Equal(t, 0, b.run(t, "cleanup --stuck --textfile "+file).code)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(text), `sbx_cleanup_last_success_timestamp_seconds{layer="stuck",provider="prod"} 0`)
}
