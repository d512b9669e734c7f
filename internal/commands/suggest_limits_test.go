package commands

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/testkit/bubble"
)

// TestConfigSuggestFitsWhatWasSeen: what it prints, pasted, leaves no note and no finding.
func TestConfigSuggestFitsWhatWasSeen(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "two days", func(t *testing.T) {
		b := staged{active: 236, timedOut: 1, quota: 10, cleaned: []stagedRun{{ago: time.Minute}}, stood: 48 * time.Hour}.bench(t)
		for _, line := range []string{"diagnose", "verify", "cron check", "stats"} {
			r := b.run(t, line+" --provider prod")
			assert.Contains(t, r.stdout+r.stderr, "the default of", line)
			assert.Contains(t, r.stdout+r.stderr, "`sbx config suggest`", line)
		}
		assert.Equal(t, 0, b.run(t, "verify").code)
		r := b.run(t, "config suggest")
		require.Equal(t, 0, r.code, r.stderr)
		assert.Equal(t, "providers:\n  prod:\n    # at most 236 active, at 2026-11-18T12:00Z; 49 samples from 2026-11-18T12:00Z to 2026-11-20T12:00Z\n"+
			"    thresholds:\n      active: 354 # 1.5 times the maximum, or the default\n      active_normal: 237 # above the maximum, or the default\n      escalate: {active: 885} # 2.5 times active\n", r.stdout)
		assert.Empty(t, r.stderr)
		assert.Equal(t, map[string]any{
			"provider": "prod", "active": 354.0, "active_normal": 237.0, "escalate_active": 885.0, "max_sandboxes": nil, "seen_max": 236.0,
			"seen_max_at": "2026-11-18T12:00:00Z", "samples": 49.0, "first_sample_at": "2026-11-18T12:00:00Z", "last_sample_at": "2026-11-20T12:00:00Z",
		}, b.run(t, "config suggest -o json").list(t, "items")[0])

		b.configureAnew(t, r.stdout+"    type: local\n")
		assert.Equal(t, 0, b.run(t, "verify").code)
		for _, line := range []string{"diagnose", "verify", "cron check", "stats"} {
			r := b.run(t, line+" --provider prod")
			assert.NotContains(t, r.stdout+r.stderr, "config suggest", line)
		}
	})
	bubble.Run(t, "no quota, and a part", func(t *testing.T) {
		b, _, _ := twoFleets(t, 1)
		b.types = []providers.Type{{Name: "cloud"}, {Name: "grid"}}
		b.configureAnew(t, "providers:\n  prod: {type: cloud}\n  other: {type: grid}\n")
		b.seenEarlier(t, "prod", 7, 30*time.Hour)
		r := b.run(t, "config suggest")
		assert.Equal(t, 3, r.code)
		assert.Contains(t, r.stdout, "      active: 20 # 1.5 times the maximum, or the default\n")
		assert.Contains(t, r.stdout, "    max_sandboxes: 20 # ")
		assert.NotContains(t, r.stdout, "other:")
		assert.Contains(t, r.stderr, "error: other: no sample of the last week is stored")
	})
	bubble.Run(t, "less than a day", func(t *testing.T) {
		b := staged{active: 236, stood: 23 * time.Hour}.bench(t)
		r := b.run(t, "config suggest")
		assert.Equal(t, 7, r.code)
		assert.Empty(t, r.stdout)
		assert.Equal(t, "sbx: error: prod: the stored samples span 23h; limits need those of a day\n"+
			"sbx: hint: `sbx stats`, `sbx verify` and the lines of `sbx cron print` keep samples: run one of them from time to time\n", r.stderr)
		assert.Len(t, b.run(t, "config suggest -o json").list(t, "errors"), 1)
	})
}
