package commands

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/journal"
	"sbx/internal/ops"
	"sbx/internal/ops/recall"
	"sbx/internal/process"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/fake"
)

// watchedEnd is a provider that shows a test the moment of the request to end.
type watchedEnd struct {
	*fake.Provider

	asked func()
}

func (w watchedEnd) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	w.asked()
	return w.Provider.Terminate(ctx, id, o)
}

// TestAnEndingCanBeLookedUp: the run that terminate names is shown, and the sandbox that
// it ended is answered from what is on record.
func TestAnEndingCanBeLookedUp(t *testing.T) {
	t.Parallel()
	seed := running("aaaa", time.Hour)
	seed.Sandbox.Name, seed.Sandbox.Labels = "worker", map[string]string{"team": "x"}
	b, _ := oneFake(seed, running("bbbb", time.Hour))
	ended := b.run(t, "terminate prod/aaaa --delete -o json")
	require.Equal(t, 0, ended.code, ended.stderr)
	run, _ := ended.object(t)["run_id"].(string)

	for _, word := range []string{run, run[:len(run)-3]} {
		shown := b.run(t, "cleanup show "+word+" -o json")
		require.Equal(t, 0, shown.code, shown.stderr)
		assert.Equal(t, run, shown.object(t)["run_id"])
		assert.Equal(t, "terminate", shown.object(t)["verb"])
		assert.Equal(t, false, shown.object(t)["resumable"])
		item := shown.list(t, "items")[0]
		assert.Equal(t, "prod/aaaa", item["ref"])
		assert.Equal(t, "verified", item["outcome"])
		before, _ := item["before"].(map[string]any)
		assert.Equal(t, map[string]any{"team": "x"}, before["labels"])
	}

	for _, word := range []string{"prod/aaaa", "aaaa", "worker"} {
		r := b.run(t, "inspect "+word+" -o json")
		assert.Equal(t, 5, r.code, "%s: %s", word, r.stderr)
		item, _ := r.object(t)["item"].(map[string]any)
		require.NotNil(t, item, r.stdout)
		assert.Equal(t, "terminated", item["state"])
		assert.Equal(t, "running", item["raw_state"])
		by, _ := item["ended_by"].(map[string]any)
		assert.NotEmpty(t, by["who"])
		delete(by, "who")
		assert.Equal(t, map[string]any{
			"at": "2026-11-20T12:00:00Z", "host": "cron-1", "verb": "terminate", "run_id": run, "outcome": "verified", "reason": "",
		}, by)
		text := b.run(t, "inspect "+word)
		assert.Equal(t, 5, text.code)
		assert.Contains(t, text.stderr, "on cron-1 ended it 0s ago (terminate "+run+"): verified")
		assert.Contains(t, text.stderr, "cleanup show "+run)
	}
	for _, line := range []string{"terminate prod/aaaa", "logs prod/aaaa"} {
		again := b.run(t, line)
		assert.Equal(t, 5, again.code, line)
		assert.Contains(t, again.stderr, "ended it 0s ago (terminate "+run+"): verified", line)
	}
	assert.Nil(t, b.run(t, "inspect bbbb -o json").item(t)["ended_by"], "it is there")
	never := b.run(t, "inspect prod/never -o json")
	assert.Equal(t, 5, never.code)
	assert.Nil(t, never.object(t)["item"])
}

// TestWhatHasEndedSaysByWhom: its record is still there.
func TestWhatHasEndedSaysByWhom(t *testing.T) {
	t.Parallel()
	b, _ := endBench(t, 1)
	require.Equal(t, 0, b.run(t, "terminate prod/aaaa").code)
	r := b.run(t, "inspect prod/aaaa -o json")
	require.Equal(t, 0, r.code, r.stderr)
	by, _ := r.item(t)["ended_by"].(map[string]any)
	require.NotNil(t, by, r.stdout)
	assert.Equal(t, "terminate", by["verb"])
	assert.Contains(t, b.run(t, "inspect prod/aaaa").stdout, "ended it 0s ago")
}

// TestATerminateThatIsKilledLeavesATrace: between the request and its answer the intent
// is on the disk already.
func TestATerminateThatIsKilledLeavesATrace(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", Now: atNoon})
	p.Add(running("aaaa", time.Hour))
	b := &bench{endings: t.TempDir()}
	killed := map[string][]byte{}
	b.members = []providers.Provider{watchedEnd{p, func() {
		files, err := filepath.Glob(filepath.Join(b.endings, "*"))
		require.NoError(t, err)
		for _, name := range files {
			killed[name], err = os.ReadFile(name)
			require.NoError(t, err)
		}
	}}}
	require.Equal(t, 0, b.run(t, "terminate prod/aaaa --delete").code)
	require.Len(t, killed, 1)
	for name, text := range killed {
		require.NoError(t, os.WriteFile(name, text, 0o600))
	}
	r := b.run(t, "inspect prod/aaaa")
	assert.Equal(t, 5, r.code)
	assert.Contains(t, r.stderr, "asked it to end 0s ago")
	assert.Contains(t, r.stderr, "the run was interrupted before it verified the end")
}

// TestTheEndOfATaskIsOnRecord: it ends without a verb of the operator, and is found
// all the same.
func TestTheEndOfATaskIsOnRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBatchBench(t, "local")
		r := b.run(t, "run -o json -- true")
		require.Equal(t, 0, r.code, r.stderr)
		item, _ := r.object(t)["item"].(map[string]any)
		ref, _ := item["sandbox"].(string)
		require.NotEmpty(t, ref, r.stdout)
		h, found := endInDir(t, b.endings, ref)
		require.True(t, found)
		assert.Equal(t, "task", h.Verb)
		assert.True(t, recall.EndedOutcome(h.Outcome), h.Outcome)
		assert.Contains(t, h.Run, "r-")
	})
}

// endInDir reads what a folder of journals holds of the end of a sandbox.
func endInDir(t *testing.T, dir, word string) (recall.EndRecord, bool) {
	t.Helper()
	none := func() (journal.Disk, error) { return journal.Dir(t.TempDir()), nil }
	d := &ops.Env{
		Process: process.Process{Now: time.Now}, Journals: none, Endings: func() (journal.Disk, error) { return journal.Dir(dir), nil },
		Store: func(bool) (store.Store, error) { return nil, errors.New("no store") },
	}
	r, _ := recall.WhoEnded(t.Context(), d, word, fault.New(fault.KindNotFound, "it is not there"))
	if r == nil {
		return recall.EndRecord{}, false
	}
	return *r, true
}

// TestAFullDiskKeepsNoSandboxAlive: what was named ends, and that it is in no journal
// is said.
func TestAFullDiskKeepsNoSandboxAlive(t *testing.T) {
	t.Parallel()
	b, p := oneFake(running("aaaa", time.Hour))
	b.adjust = func(d *Deps) {
		d.Endings = func() (journal.Disk, error) { return nil, errors.New("no space left on device") }
	}
	r := b.run(t, "terminate prod/aaaa")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stderr, "what is done is not in the journal: no space left on device")
	assert.Len(t, p.Calls(fake.OpTerminate), 1)
}

// TestInspectSaysWhoStoppedIt: a provider may keep what was ended as stopped. Once it was started again,
// that is no longer what stopped it.
func TestInspectSaysWhoStoppedIt(t *testing.T) {
	t.Parallel()
	first, _ := oneFake(running("aaaa", time.Hour))
	first.home = t.TempDir()
	require.Equal(t, 0, first.run(t, "cleanup --older-than 10m --yes --ignore-activity --provider prod --unowned --max-fraction 100%").code)
	for name, tc := range map[string]struct {
		state   sandbox.State
		started time.Time
		want    string
	}{
		"stopped":                   {sandbox.StateStopped, noon.Add(-time.Hour), "cleanup"},
		"it runs":                   {sandbox.StateRunning, noon.Add(-time.Hour), ""},
		"started again and stopped": {sandbox.StateStopped, time.Now(), ""},
	} {
		now := running("aaaa", time.Hour)
		now.Sandbox.State, now.Sandbox.StartedAt = tc.state, tc.started
		b, _ := oneFake(now)
		b.home = first.home
		by, _ := b.run(t, "inspect prod/aaaa -o json").item(t)["ended_by"].(map[string]any)
		verb, _ := by["verb"].(string)
		assert.Equal(t, tc.want, verb, name)
	}
}

// TestWhatAnotherHostFoundEnded: a reconcile that brought a record to its end has ended nothing.
func TestWhatAnotherHostFoundEnded(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("bbbb", time.Hour))
	b.home = t.TempDir()
	st := b.kept(atNoon)
	require.NoError(t, st.PutRecord(t.Context(), store.Record{Provider: "prod", ID: "aaaa", State: sandbox.StateRunning, CreatedAt: noon.Add(-time.Hour)}))
	require.NoError(t, st.EndRecord(t.Context(), sandbox.Ref{Provider: "prod", ID: "aaaa"}, sandbox.StateTerminated, "ghost", noon.Add(-time.Minute)))
	r := b.run(t, "terminate prod/aaaa")
	assert.Contains(t, r.stderr, "found it ended 1m ago: already_gone (ghost)")
	assert.NotContains(t, r.stderr, " ended it ")
}

// TestAnUnacknowledgedEndIsNoAbsence: after a request without an answer, that no provider finds the
// sandbox proves no end.
func TestAnUnacknowledgedEndIsNoAbsence(t *testing.T) {
	t.Parallel()
	b, p := oneFake(running("aaaa", time.Hour), running("bbbb", time.Hour))
	b.home = t.TempDir()
	p.Break(fake.Fault{Op: fake.OpTerminate, Err: fault.New(fault.KindUnavailable, "500")})
	require.NotEqual(t, 0, b.run(t, "terminate prod/aaaa --wait 1ms").code)
	p.Orphan("aaaa")
	r := b.run(t, "inspect prod/aaaa")
	assert.Contains(t, r.stdout+r.stderr, "its provider does not find it, which proves no end")
	assert.NotContains(t, r.stdout+r.stderr, "no longer exists")
}

// TestWhatAnotherHostEnded: the store that hosts share knows who, and the sums of his run.
func TestWhatAnotherHostEnded(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("bbbb", time.Hour))
	b.home = t.TempDir()
	st := b.kept(atNoon)
	ref := sandbox.Ref{Provider: "prod", ID: "aaaa"}
	require.NoError(t, st.PutRecord(t.Context(), store.Record{Provider: "prod", ID: "aaaa", TaskID: "t-1", State: sandbox.StateRunning, CreatedAt: noon.Add(-time.Hour)}))
	require.NoError(t, st.EndRecord(t.Context(), ref, sandbox.StateTerminated, "ended by alice on cron-2", noon.Add(-time.Minute)))
	r := b.run(t, "inspect prod/aaaa")
	assert.Equal(t, 5, r.code)
	assert.Contains(t, r.stderr, "ended by alice on cron-2")

	b.shared = store.Memory(time.Now)
	require.NoError(t, b.shared.PutRun(t.Context(), store.Run{ID: "r-20261120115900000-zzzzzz", Verb: runs.VerbCleanup, Host: "cron-2", Who: "alice", StartedAt: noon.Add(-time.Minute), EndedAt: noon, Selected: 3, Acted: true, Counts: map[string]int{"verified": 3}}))
	for _, word := range []string{"last", "r-20261120115900000-zzzzzz", "r-20261120115900"} {
		shown := b.run(t, "cleanup show "+word+" -o json")
		require.Equal(t, 0, shown.code, shown.stderr)
		assert.Equal(t, "r-20261120115900000-zzzzzz", shown.object(t)["run_id"])
		assert.Equal(t, false, shown.object(t)["complete"], "its items are elsewhere")
	}
	assert.Contains(t, b.run(t, "cleanup show last").stderr, "in the journal of cron-2, where it ran; in total: 3 verified")
}

// TestCleanupShowTakesLastAndPrefixes: a beginning that two runs have is no run.
func TestCleanupShowTakesLastAndPrefixes(t *testing.T) {
	t.Parallel()
	b, _ := oneFake(running("aaaa", time.Hour), running("bbbb", 2*time.Hour))
	b.home = t.TempDir()
	for _, line := range []string{"cleanup --older-than 90m --yes", "cleanup --older-than 10m --yes --ignore-activity"} {
		r := b.run(t, line+" --provider prod --unowned -o json")
		require.NotEmpty(t, r.object(t)["run_id"], r.stderr)
	}
	files, err := os.ReadDir(filepath.Join(b.home, "runs"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	newest := strings.TrimSuffix(files[1].Name(), ".jsonl")
	assert.Equal(t, newest, b.run(t, "cleanup show last -o json").object(t)["run_id"])
	assert.Equal(t, newest, b.run(t, "cleanup show "+newest[:len(newest)-1]+" -o json").object(t)["run_id"])
	twice := b.run(t, "cleanup show "+newest[:10])
	assert.Equal(t, 2, twice.code)
	assert.Contains(t, twice.stderr, "is a prefix of 2 runs")
	assert.Equal(t, 5, b.run(t, "cleanup show r-2020").code)
	assert.Equal(t, 5, b.run(t, "cleanup show r-2").code, "that is too short to mean one")
}
