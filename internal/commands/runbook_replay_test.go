package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/snapshot"
)

// putSnapshot writes a snapshot of a fleet without sandboxes.
func putSnapshot(t *testing.T, file string) {
	t.Helper()
	text, err := snapshot.Encode(&snapshot.Snapshot{Schema: snapshot.Schema, At: noon, Concluded: snapshot.Concluded{Verdict: "true", Checks: []snapshot.Answer{
		{ID: "R125", Verdict: "unknown"}, {ID: "R126", Verdict: "true"}, {ID: "R127", Verdict: "unknown"}, {ID: "R128", Verdict: "unknown"}, {ID: "R129", Verdict: "unknown"},
	}}})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, text, 0o600))
}

// recordedBench has recorded a loop into the folder past of its working directory.
func recordedBench(t *testing.T) *bench {
	t.Helper()
	b, _ := oneFake(loop(), running("young001", 0))
	b.configureNothing(t)
	b.workdir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(b.workdir, "past"), 0o755))
	r := b.run(t, "diagnose --snapshot past/loop.json")
	require.Equal(t, 10, r.code, r.stderr)
	info, err := os.Stat(filepath.Join(b.workdir, "past", "loop.json"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	return b
}

// TestRunbookTestNamesWhatAThresholdChanges: green by the settings of then, red by others, and green
// again once the difference was accepted.
func TestRunbookTestNamesWhatAThresholdChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := recordedBench(t)
		r := b.run(t, "runbook test --dir past")
		assert.Equal(t, "INCIDENT\tVERDICT\tMESSAGE\nloop\tsame\t\n", r.stdout)
		assert.Equal(t, 0, r.code, r.stderr)

		b.configureAnew(t, "thresholds: {stuck_age: 1h}\n")
		r = b.run(t, "runbook test --dir past")
		assert.Equal(t, 10, r.code)
		for _, want := range []string{
			"stuck 1 -> 0: no longer prod/loop0001", "plan 1 -> 0: no longer prod/loop0001", "cause busy loop no longer likely", "alert sandbox_stuck at prod no longer holds",
			"runbook sandbox-stuck: branch busy loop no longer holds", "check R126 false -> true", "thresholds.stuck_age 10m -> 1h (prod)",
		} {
			assert.Contains(t, r.stdout, want)
		}
		assert.Contains(t, r.stderr, "1 of 1 recorded incidents would be judged differently: loop")
		row := b.run(t, "runbook test --dir past -o json").list(t, "items")[0]
		assert.Equal(t, "changed", row["verdict"])

		one := b.run(t, "runbook test cleanup-not-running --dir past")
		assert.NotContains(t, one.stdout, "runbook sandbox-stuck", "only that runbook is held against it")
		assert.Equal(t, 10, one.code)

		r = b.run(t, "runbook test --dir past --update")
		assert.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "loop\taccepted\tverdict false -> true; stuck 1 -> 0")
		assert.Equal(t, 0, b.run(t, "runbook test --dir past").code)
		b.configureAnew(t, "")
		assert.Equal(t, 10, b.run(t, "runbook test --dir past").code, "the old settings are the difference now")
	})
}

// TestRunbookTestByAnotherDocument: a condition that changes is named with its step.
func TestRunbookTestByAnotherDocument(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := recordedBench(t)
		text, err := os.ReadFile("../../runbooks/provisioning-failing.yaml")
		require.NoError(t, err)
		file := filepath.Join(b.workdir, "mine.yaml")
		changed := strings.ReplaceAll(string(text), "stats.active == 0 and stats.provisioning > 0", "stats.active > 0")
		require.NotEqual(t, string(text), changed)
		require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
		r := b.run(t, "runbook test --dir past --file "+file)
		assert.Equal(t, 10, r.code, r.stdout)
		assert.Contains(t, r.stdout, "runbook provisioning-failing: ")
	})
}

func TestRunbookTestOfWhatItCannotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := recordedBench(t)
		bad := filepath.Join(b.workdir, "past", "bad.json")
		require.NoError(t, os.WriteFile(bad, []byte(`{"schema":"sbx.snapshot/v7"}`), 0o600))
		r := b.run(t, "runbook test --dir past -o json")
		assert.Equal(t, 3, r.code, r.stderr)
		items := r.list(t, "items")
		assert.Equal(t, []any{"unreadable", "same"}, []any{items[0]["verdict"], items[1]["verdict"]})
		assert.Contains(t, r.stdout, "written by a newer sbx")
		for line, want := range map[string]string{
			"runbook test":                                   "--dir names the folder",
			"runbook test --update":                          "--dir names the folder",
			"runbook test --dir nowhere":                     "no such file",
			"runbook test x --file y":                        "exclude each other",
			"diagnose prod/loop0001 --snapshot x.json":       "excludes a REF",
			"runbook test sandbox-stuk --dir past":           `no runbook is called "sandbox-stuk"`,
			"diagnose --snapshot nowhere/at-all/loop.json":   "the snapshot cannot be written",
			"runbook test --dir " + t.TempDir() + " -o json": "has no .json files",
		} {
			r := b.run(t, line)
			assert.NotEqual(t, 0, r.code, line)
			assert.Contains(t, r.stderr, want, line)
		}
	})
}
