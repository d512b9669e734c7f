package commands

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/journal"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// auditedRuns acts twice on a fleet of prod: one sandbox by name, the others by rule.
func auditedRuns(t *testing.T) *bench {
	t.Helper()
	b, _ := herdBench(t, 3)
	var ticks atomic.Int64
	b.now = func() time.Time { return noon.Add(time.Duration(ticks.Add(1)) * time.Millisecond) }
	require.Equal(t, 0, b.run(t, "terminate prod/prod0000 --yes").code)
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	return b
}

func TestAuditListsEveryVerb(t *testing.T) {
	t.Parallel()
	b := auditedRuns(t)
	items := b.run(t, "audit -o json").list(t, "items")
	require.Len(t, items, 3)
	for _, i := range items {
		assert.Equal(t, "verified", i["outcome"])
		assert.NotEmpty(t, i["reason"])
	}
	assert.Equal(t, "terminate", items[2]["verb"], "newest first")
	for line, count := range map[string]int{
		"audit -o json --verb cleanup": 2, "audit -o json prod0000": 1, "audit -o json prod/prod0001": 1, "audit -o json --limit 2": 2,
		"audit -o json --outcome failed,unknown": 0, "audit -o json --by nobody": 0, "audit -o json --provider prod": 3,
	} {
		assert.Len(t, b.run(t, line).list(t, "items"), count, line)
	}
}

// TestAuditShowsADamagedTrail: a changed line and a removed journal are findings, and the rest is
// listed all the same.
func TestAuditShowsADamagedTrail(t *testing.T) {
	t.Parallel()
	b := auditedRuns(t)
	require.Equal(t, 0, b.run(t, tenMinutes).code, "a second run")
	require.Equal(t, 0, b.run(t, tenMinutes).code, "a third")
	runs, err := filepath.Glob(filepath.Join(b.home, "runs", "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, runs, 3)
	require.NoError(t, os.Remove(runs[1]))
	r := b.run(t, "audit")
	assert.Equal(t, 10, r.code)
	assert.Contains(t, r.stderr, "is missing")
	text, err := os.ReadFile(runs[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(runs[0], []byte(strings.Replace(string(text), "verified", "skipped!", 1)), 0o600))
	r = b.run(t, "audit -o json")
	assert.Equal(t, 10, r.code)
	assert.Contains(t, r.stdout, "was changed or damaged")
	assert.NotEmpty(t, r.list(t, "items"), "what can be trusted")
}

// TestAuditOfAnotherHost: it reads what that host has reported, and says of which runs it has not.
func TestAuditOfAnotherHost(t *testing.T) {
	t.Parallel()
	there, _ := herdBench(t, 2)
	there.shared = store.Memory(time.Now)
	require.Equal(t, 0, there.run(t, tenMinutes).code)
	require.NoError(t, there.shared.PutRun(t.Context(), store.Run{ID: "r-20261120115900000-zzzzzz", Verb: runs.VerbCleanup, Host: "cron-2", Who: "alice", StartedAt: noon.Add(-time.Minute), Selected: 3, Acted: true}))
	assert.Len(t, there.run(t, "audit -o json").list(t, "items"), 2, "its own are not listed twice")

	here, _ := oneFake()
	here.shared = there.shared
	r := here.run(t, "audit -o json")
	assert.Equal(t, 0, r.code, r.stderr)
	require.Len(t, r.list(t, "items"), 2)
	assert.Equal(t, "verified", r.list(t, "items")[0]["outcome"])
	assert.Equal(t, false, r.object(t)["complete"], "one run has not reported")
	assert.Contains(t, r.stderr, "of alice on cron-2 (cleanup, 3 selected) has not reported what it did")
}

// TestAuditOfARunThatWasResumedLater: a run of days ago may have acted a minute ago.
func TestAuditOfARunThatWasResumedLater(t *testing.T) {
	t.Parallel()
	b, _ := herdBench(t, 1)
	var hours atomic.Int64
	b.now = func() time.Time { return noon.Add(time.Duration(hours.Load()) * time.Hour) }
	require.Equal(t, 0, b.run(t, tenMinutes).code)
	run := b.runs(t)[0]
	disk := journal.Dir(filepath.Join(b.home, "runs"))
	log, err := journal.Read(disk, run)
	require.NoError(t, err)
	later := func() time.Time { return noon.Add(60 * time.Hour) }
	w, err := journal.Extend(disk, log, later)
	require.NoError(t, err)
	require.NoError(t, w.Append(runs.EntryIntent, runs.Intent{Ref: sandbox.Ref{Provider: "prod", ID: "late0001"}}))
	require.NoError(t, w.Close())
	hours.Store(61)
	items := b.run(t, "audit --since 24h -o json").list(t, "items")
	require.Len(t, items, 1)
	assert.Equal(t, "prod/late0001", items[0]["ref"])
	assert.Nil(t, items[0]["outcome"])
}

// TestAuditOfAnEmptiedJournal: a file without one entry is a finding, and blames no other.
func TestAuditOfAnEmptiedJournal(t *testing.T) {
	t.Parallel()
	b := auditedRuns(t)
	runs, err := filepath.Glob(filepath.Join(b.home, "runs", "*.jsonl"))
	require.NoError(t, err)
	assert.Contains(t, b.run(t, "audit --by nobody").stderr, "no act matches")
	assert.Equal(t, 2, b.runArgs(t, "audit", "").code)
	require.NoError(t, os.WriteFile(runs[0], nil, 0o600))
	r := b.run(t, "audit")
	assert.Equal(t, 10, r.code)
	assert.Contains(t, r.stderr, "it has no entry")
}
