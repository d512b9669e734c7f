package metrics_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/metrics"
	"sbx/internal/sandbox"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// aRun is a cleanup of two profiles, of which one has never gone well.
func aRun() metrics.Cleanup {
	oldest := 4210.5
	return metrics.Cleanup{
		Build: metrics.Build{Version: "1.2.3", Commit: "abc", Go: "go1.26"}, ExitCode: 3, DurationSeconds: 12.25,
		Profiles: []metrics.ProfileFigures{
			{
				Profile: "prod", LastSuccess: noon.Add(-5 * time.Minute), LastRun: noon, Complete: true, Candidates: 4, KeptUnknownAge: 1, Unverified: 1,
				Outcomes:              map[string]int{"verified": 3, "accepted": 1},
				OldestEligibleSeconds: &oldest, Ages: []time.Duration{30 * time.Second, 10 * time.Minute, 48 * time.Hour, -time.Second},
			},
			{Profile: "daytona", LastRun: noon},
		},
	}
}

func TestCleanupGolden(t *testing.T) {
	t.Parallel()
	got := aRun().Set().Text()
	path := filepath.Join("testdata", "cleanup.prom")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

func TestCleanupFigures(t *testing.T) {
	t.Parallel()
	got := parsed(t, aRun().Set().Text())
	value := func(name, provider string) float64 {
		t.Helper()
		for _, m := range got[name].GetMetric() {
			if labelsOf(m)["provider"] == provider {
				return m.GetGauge().GetValue()
			}
		}
		t.Fatalf("no %s of %q", name, provider)
		return 0
	}
	for name, want := range map[string]float64{
		"sbx_cleanup_last_success_timestamp_seconds": float64(noon.Add(-5 * time.Minute).Unix()),
		"sbx_cleanup_last_run_timestamp_seconds":     float64(noon.Unix()),
		"sbx_cleanup_candidates":                     4,
		"sbx_cleanup_kept_unknown_age":               1,
		"sbx_cleanup_unverified":                     1,
		"sbx_cleanup_complete":                       1,
		"sbx_cleanup_oldest_eligible_age_seconds":    4210.5,
	} {
		assert.InDelta(t, want, value(name, "prod"), 1e-6, name)
	}
	assert.InDelta(t, 3, value("sbx_cleanup_exit_code", ""), 0)
	assert.InDelta(t, 12.25, value("sbx_cleanup_duration_seconds", ""), 0)
	assert.InDelta(t, 0, value("sbx_cleanup_last_success_timestamp_seconds", "daytona"), 0, "never is 0, so that an alert on its age fires")
	assert.Len(t, got["sbx_cleanup_oldest_eligible_age_seconds"].GetMetric(), 1, "what is not there is absent")
	h := got["sbx_cleanup_fleet_age_seconds"].GetMetric()[0].GetHistogram()
	assert.EqualValues(t, 4, h.GetSampleCount())
	assert.InDelta(t, 60, h.GetBucket()[0].GetUpperBound(), 0)
	assert.EqualValues(t, 2, h.GetBucket()[0].GetCumulativeCount())
	assert.EqualValues(t, 3, h.GetBucket()[2].GetCumulativeCount(), "10 minutes are within 600 s")
}

// TestEveryOutcomeIsThere: a rate over a series that appears late misses its
// first step.
func TestEveryOutcomeIsThere(t *testing.T) {
	t.Parallel()
	run := aRun()
	run.Profiles[0].Outcomes["new_word"] = 2
	var names []string
	for _, m := range parsed(t, run.Set().Text())["sbx_cleanup_outcomes"].GetMetric() {
		if labels := labelsOf(m); labels["provider"] == "prod" {
			names = append(names, labels["outcome"])
		}
	}
	require.Len(t, names, len(sandbox.Outcomes())+1)
	assert.True(t, slices.Contains(names, "new_word") && slices.Contains(names, "not_attempted"))
}

// TestADryRunKeepsTheLastSuccess: the figure is the journal's, whatever the run
// was.
func TestADryRunKeepsTheLastSuccess(t *testing.T) {
	t.Parallel()
	dry := aRun()
	dry.Dry, dry.Refused, dry.Profiles[0].LastRun = true, true, noon.Add(time.Hour)
	got := parsed(t, dry.Set().Text())
	assert.InDelta(t, 1, got["sbx_cleanup_dry_run"].GetMetric()[0].GetGauge().GetValue(), 0)
	assert.InDelta(t, 1, got["sbx_cleanup_refused"].GetMetric()[0].GetGauge().GetValue(), 0)
	assert.InDelta(t, float64(noon.Add(-5*time.Minute).Unix()), got["sbx_cleanup_last_success_timestamp_seconds"].GetMetric()[0].GetGauge().GetValue(), 0)
}

// TestLayersShareAFolder: two files of one folder never hold the same sample.
func TestLayersShareAFolder(t *testing.T) {
	t.Parallel()
	run := aRun()
	run.Layer = "stuck"
	for name, family := range parsed(t, run.Set().Text()) {
		for _, m := range family.GetMetric() {
			assert.Equal(t, "stuck", labelsOf(m)["layer"], name)
		}
	}
}

func TestNoFigureIsANameTwice(t *testing.T) {
	t.Parallel()
	run := aRun()
	run.Profiles = append(run.Profiles, run.Profiles[0])
	assert.Equal(t, aRun().Set().Text(), run.Set().Text(), "a collector refuses a file that holds one sample twice")
}
