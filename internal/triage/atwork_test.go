package triage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// samplesOf are random samples, every 5 s up to noon, as a provider that computes percentages
// stores them.
func samplesOf(r *rand.Rand) []sandbox.Usage {
	var samples []sandbox.Usage
	levels := [][]float64{{0, 0.2}, {0, 100}, {6, 40}, {95, 200}, {0, 7}}[r.IntN(5)]
	start, growth := int64(r.IntN(500)), int64(r.IntN(10))
	for i := range 1 + r.IntN(73) {
		cpu := levels[0] + r.Float64()*(levels[1]-levels[0])
		samples = append(samples, sandbox.Usage{
			At: noon().Add(-time.Duration(72-i) * 5 * time.Second), CPUPercent: &cpu, Source: "metrics API",
			MemoryBytes: new((start + int64(i)*growth) * sandbox.MiB), MemoryLimitBytes: new(int64(512 * sandbox.MiB)),
		})
	}
	return samples
}

// TestSamplesThatShowWorkDecide: whatever else would be observed of the sandbox, it is not stuck.
// So a look that has read such samples may ask nothing else.
func TestSamplesThatShowWorkDecide(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4)) // a seed that repeats
	limits, byAll, byNewest := DefaultThresholds(), 0, 0
	for range 20_000 {
		s, sig := guess(r)
		s.State, s.CreatedAt = sandbox.StateRunning, noon().Add(-time.Hour)
		samples := samplesOf(r)
		trend := TrendOf(samples, limits)
		sig.Looked, sig.Trend, sig.Processes = true, &trend, new(r.IntN(2))
		sig.Answers = []sandbox.Verdict{sandbox.True, sandbox.False, ""}[r.IntN(3)]
		sig.SourceFailed, sig.LookFailed = r.IntN(2) == 0, r.IntN(2) == 0
		note := fmt.Sprintf("%+v\n%+v", s, sig)
		if ShowsWork(samples, limits) {
			byAll++
			require.NotEqual(t, sandbox.True, Judge(s, sig, limits, noon()).Stuck, note)
		}
		if SampleShowsWork(samples[len(samples)-1], limits) {
			byNewest++
			s.ActivityBasis = sandbox.BasisUnknown
			if sig.Logs != nil {
				sig.Logs.Complete = false
			}
			require.NotEqual(t, sandbox.True, Judge(s, sig, limits, noon()).Stuck, note)
		}
	}
	assert.Greater(t, byAll, 1000)
	assert.Greater(t, byNewest, 1000)
}

// TestTheNewestSampleIsASignOfWork: an agent that has just begun is at work, whatever the mean says.
func TestTheNewestSampleIsASignOfWork(t *testing.T) {
	t.Parallel()
	var samples []sandbox.Usage
	for i := range 73 {
		samples = append(samples, sandbox.Usage{At: noon().Add(time.Duration(i-72) * 5 * time.Second), CPUPercent: new(0.0)})
	}
	assert.False(t, ShowsWork(samples, DefaultThresholds()))
	samples[72].CPUPercent = new(6.0)
	assert.True(t, ShowsWork(samples, DefaultThresholds()))
	samples[72].CPUPercent = new(4.0)
	assert.False(t, ShowsWork(samples, DefaultThresholds()), "an idle VM may use as much for a moment")
	assert.False(t, SampleShowsWork(samples[72], DefaultThresholds()))
	assert.False(t, SampleShowsWork(sandbox.Usage{}, DefaultThresholds()))
	assert.False(t, SampleShowsWork(sandbox.Usage{CPUPercent: new(99.0)}, DefaultThresholds()), "it may be a loop")
}
