package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/snapshot"
)

// recordedIncidents are the files of runbooks/incidents, which scripts/record-incidents has written.
func recordedIncidents(tb testing.TB) (folder string, files []string) {
	tb.Helper()
	folder, err := filepath.Abs("../../runbooks/incidents")
	require.NoError(tb, err)
	files, err = filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(tb, err)
	return folder, files
}

// TestRecordedIncidentsAreJudgedAsTheyWere by the default settings and the shipped runbooks. A change
// of a rule that changes one of them on purpose is accepted with `sbx runbook test --dir
// runbooks/incidents --update`.
func TestRecordedIncidentsAreJudgedAsTheyWere(t *testing.T) {
	t.Parallel()
	folder, files := recordedIncidents(t)
	assert.GreaterOrEqual(t, len(files), 12)
	b := newBench().configureNothing(t)
	r := b.run(t, "runbook test --dir "+folder)
	assert.Equal(t, 0, r.code, r.stdout)
	assert.Equal(t, len(files)+1, strings.Count(r.stdout, "\n"))
}

// TestRecordedIncidentsShowWhatWasStaged, so that an update cannot hide that a case is no longer found.
func TestRecordedIncidentsShowWhatWasStaged(t *testing.T) {
	t.Parallel()
	folder, _ := recordedIncidents(t)
	for name, want := range map[string]struct {
		causes []string // of the stuck ones, or the suspected
		first  string
		plan   int
	}{
		"busy":                {[]string{"busy_loop"}, "infinite_loop", 1},
		"hung":                {[]string{"hung_io"}, "external_hang", 1},
		"silent":              {[]string{"silent"}, "silent", 1},
		"leak":                {[]string{"leak"}, "memory_leak", 1},
		"orphan":              {nil, "", 0},
		"healthy":             {nil, "", 0},
		"killed":              {nil, "", 0},
		"empty":               {nil, "", 0},
		"mixed":               {[]string{"busy_loop", "hung_io", "silent"}, "infinite_loop", 3},
		"cleanup-overdue":     {[]string{"silent"}, "silent", 1},
		"fleet-provisioning":  {[]string{"provisioning", "provisioning", "provisioning"}, "provisioning", 3},
		"fleet-quota":         {[]string{"busy_loop", "busy_loop", "busy_loop", "leak", "leak", "no_answer"}, "infinite_loop", 6},
		"fleet-provider-down": {[]string{"busy_loop", "busy_loop", "busy_loop", "leak", "leak", "no_answer"}, "infinite_loop", 6},
	} {
		text, err := os.ReadFile(filepath.Join(folder, name+".json"))
		require.NoError(t, err)
		s, err := snapshot.Decode(text)
		require.NoError(t, err, name)
		assert.NotEmpty(t, s.About, name)
		assert.NotContains(t, string(text), "/tmp", name)
		var causes []string
		for _, m := range append(s.Concluded.Stuck, s.Concluded.Suspected...) {
			causes = append(causes, string(m.Cause))
		}
		assert.Equal(t, want.causes, causes, name)
		assert.Len(t, s.Concluded.Plan, want.plan, name)
		if want.first != "" && assert.NotEmpty(t, s.Concluded.Causes, name) {
			assert.Equal(t, want.first, s.Concluded.Causes[0].ID, name)
		}
		assert.NotEmpty(t, s.Concluded.Runbooks, name)
	}
}

// TestAChangedThresholdNamesTheIncidents: each of these changes some recorded incidents, by name, and
// leaves the others alone.
func TestAChangedThresholdNamesTheIncidents(t *testing.T) {
	t.Parallel()
	folder, _ := recordedIncidents(t)
	for config, want := range map[string]struct {
		changed, same []string
		says          string
	}{
		"{stuck_age: 20m}": {
			[]string{"busy", "hung", "silent", "mixed", "cleanup-overdue"},
			[]string{"healthy", "orphan", "empty", "fleet-provisioning"},
			"cause busy loop no longer likely",
		},
		"{provisioning_age: 1h}": {[]string{"fleet", "fleet-provisioning"}, []string{"busy", "mixed", "fleet-quota"}, "stuck 3 -> 0"},
		"{quota_near: 97%}":      {[]string{"fleet-quota", "fleet", "fleet-provider-down"}, []string{"busy", "empty"}, "alert quota_near at novita no longer holds"},
		"{active: 50}":           {[]string{"fleet-quota"}, []string{"busy"}, "flag R4 no longer holds"},
		"{cleanup_every: 1h}":    {[]string{"cleanup-overdue"}, []string{"busy", "fleet"}, "flag R55 no longer holds"},
	} {
		b := newBench().configure(t, "thresholds: "+config+"\n")
		r := b.run(t, "runbook test --dir "+folder+" -o json")
		assert.Equal(t, 10, r.code, config)
		verdicts, told := map[string]any{}, fmt.Sprint(r.list(t, "errors")[0]["message"])
		for _, row := range r.list(t, "items") {
			name, _ := row["incident"].(string)
			verdicts[name] = row["verdict"]
		}
		for _, name := range want.changed {
			assert.Equal(t, "changed", verdicts[name], "%s: %s", config, name)
			assert.Contains(t, told, name, config)
		}
		for _, name := range want.same {
			assert.Equal(t, "same", verdicts[name], "%s: %s", config, name)
		}
		assert.Contains(t, r.stdout, want.says, config)
	}
}

// BenchmarkRunbookTest judges 50 recorded incidents again: at most a second.
func BenchmarkRunbookTest(b *testing.B) {
	_, files := recordedIncidents(b)
	folder := b.TempDir()
	for i := range 50 {
		text, err := os.ReadFile(files[i%len(files)])
		require.NoError(b, err)
		require.True(b, json.Valid(text))
		require.NoError(b, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%02d.json", i)), text, 0o600))
	}
	bench := newBench()
	bench.home = b.TempDir()
	for b.Loop() {
		if r := bench.run(b, "runbook test --dir "+folder); r.code != 0 {
			b.Fatal(r.stdout, r.stderr)
		}
	}
}
