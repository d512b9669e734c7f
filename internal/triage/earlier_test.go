package triage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// used is a sample of memory, some time before noon, of a sandbox with a limit of 1000 MiB.
func used(ago time.Duration, mib float64) sandbox.Usage {
	return sandbox.Usage{At: noon().Add(-ago), MemoryBytes: new(int64(mib * sandbox.MiB)), MemoryLimitBytes: new(int64(1000 * sandbox.MiB))}
}

// TestEarlierLooksShowGrowth: two samples 0.3 s apart show none, and earlier looks do.
func TestEarlierLooksShowGrowth(t *testing.T) {
	t.Parallel()
	th := DefaultThresholds()
	now := func(mib float64) []sandbox.Usage {
		return []sandbox.Usage{used(300*time.Millisecond, mib), used(0, mib)}
	}
	for name, tc := range map[string]struct {
		earlier []sandbox.Usage
		now     float64
		grows   bool
	}{
		"no earlier look":       {nil, 600, false},
		"steady growth":         {[]sandbox.Usage{used(4*time.Minute, 440), used(2*time.Minute, 520)}, 600, true},
		"a plateau":             {[]sandbox.Usage{used(8*time.Minute, 100), used(6*time.Minute, 600), used(2*time.Minute, 600)}, 600, false},
		"it has shrunk":         {[]sandbox.Usage{used(4*time.Minute, 400), used(2*time.Minute, 800)}, 300, false},
		"older than the window": {[]sandbox.Usage{used(3*time.Hour, 100)}, 600, false},
		"a moment ago":          {[]sandbox.Usage{used(time.Second, 500)}, 600, false},
		"of the future":         {[]sandbox.Usage{used(-time.Hour, 100)}, 600, false},
		"small growth":          {[]sandbox.Usage{used(5*time.Minute, 598), used(2*time.Minute, 599)}, 600, false},
	} {
		samples := now(tc.now)
		got := TrendOf(samples, th).AddEarlier(tc.earlier, samples, th)
		assert.Equal(t, tc.grows, got.memoryGrows(th), name)
		if tc.grows {
			assert.Equal(t, "earlier looks", got.MemorySource, name)
			assert.InDelta(t, 40, *got.MemorySlope, 1, name)
		}
	}
}

// TestMemoryPressureIsToldBeforeTheKill is S3-16.
func TestMemoryPressureIsToldBeforeTheKill(t *testing.T) {
	t.Parallel()
	th := DefaultThresholds()
	for name, tc := range map[string]struct {
		earlier []sandbox.Usage
		now     float64
		verdict sandbox.Verdict
		level   Severity
	}{
		"far from the limit":       {nil, 500, sandbox.False, Info},
		"near it, once":            {nil, 950, sandbox.True, Info},
		"near it for six minutes":  {[]sandbox.Usage{used(6*time.Minute, 940), used(3*time.Minute, 960)}, 950, sandbox.True, Warning},
		"near it since a moment":   {[]sandbox.Usage{used(6*time.Minute, 500), used(time.Minute, 960)}, 950, sandbox.True, Info},
		"it will be full in time":  {[]sandbox.Usage{used(4*time.Minute, 400), used(2*time.Minute, 600)}, 800, sandbox.True, Warning},
		"it grows and has room":    {[]sandbox.Usage{used(4*time.Minute, 100), used(2*time.Minute, 125)}, 150, sandbox.False, Info},
		"it was near, and is free": {[]sandbox.Usage{used(6*time.Minute, 950)}, 300, sandbox.False, Info},
	} {
		samples := []sandbox.Usage{used(300*time.Millisecond, tc.now), used(0, tc.now)}
		trend := TrendOf(samples, th).AddEarlier(tc.earlier, samples, th)
		f := flagMemoryPressure(old(time.Hour), Signals{Trend: &trend}, th)
		assert.Equal(t, tc.verdict, f.Verdict, name)
		assert.Equal(t, tc.level, f.Severity, name)
	}
	unlimited := TrendOf([]sandbox.Usage{{At: noon(), MemoryBytes: new(int64(1))}}, th)
	assert.Equal(t, sandbox.Unknown, flagMemoryPressure(old(time.Hour), Signals{Trend: &unlimited}, th).Verdict)
}
