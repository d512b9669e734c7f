package triage

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// usage makes a sample n seconds after noon.
func usage(n float64, change func(*sandbox.Usage)) sandbox.Usage {
	u := sandbox.Usage{At: noon().Add(time.Duration(n * float64(time.Second)))}
	change(&u)
	return u
}

func cpu(n, total float64) sandbox.Usage {
	return usage(n, func(u *sandbox.Usage) { u.CPUSeconds = &total })
}

func mem(n, mib float64) sandbox.Usage {
	return usage(n, func(u *sandbox.Usage) { u.MemoryBytes = new(int64(mib * sandbox.MiB)) })
}

func ops(n float64, total int64) sandbox.Usage {
	return usage(n, func(u *sandbox.Usage) { u.Operations = &total })
}

// at2 is two samples ten seconds apart that show one figure of each kind.
func at2(cpuPercent, opsRate float64, waiting string) []sandbox.Usage {
	var out []sandbox.Usage
	for n := range 2 {
		out = append(out, usage(float64(10*n), func(u *sandbox.Usage) {
			if cpuPercent >= 0 {
				u.CPUSeconds = new(float64(n) * cpuPercent / 10)
			}
			if opsRate >= 0 {
				u.Operations = new(int64(float64(10*n) * opsRate))
			}
			u.Waiting = waiting
		}))
	}
	return out
}

func TestUsagePatterns(t *testing.T) {
	t.Parallel()
	const none = -1
	for name, tc := range map[string]struct {
		samples []sandbox.Usage
		pattern UsagePattern
	}{
		"nothing":                     {nil, PatternUnknown},
		"no figures":                  {[]sandbox.Usage{{}, {}}, PatternUnknown},
		"95 percent":                  {at2(95, none, ""), PatternBusy}, // R45
		"just under 95":               {at2(94.9, none, ""), PatternSteady},
		"two cores":                   {at2(200, none, ""), PatternBusy},
		"0 percent":                   {at2(0, none, ""), PatternIdle}, // R48
		"just under 1":                {at2(0.9, none, ""), PatternIdle},
		"1 percent":                   {at2(1, none, ""), PatternSteady},
		"no operations":               {at2(0, 0, ""), PatternIdle}, // R50
		"no operations, no processor": {at2(none, 0, ""), PatternIdle},
		"operations, no processor":    {at2(none, 3, ""), PatternUnknown},
		"operations on a low flame":   {at2(0, 3, ""), PatternSteady},
		"waits for a peer":            {at2(0, 0, "tcp 10.0.0.1:443"), PatternIdle},
		"waits, but works":            {at2(50, 0, "tcp 10.0.0.1:443"), PatternSteady},
		"sleeps":                      {at2(0, none, "sleep"), PatternIdle},
		"grows and is busy":           {[]sandbox.Usage{mem(0, 10), mem(60, 30), cpu(0, 0), cpu(60, 60)}, PatternBusy}, // R49
		"given percent":               {[]sandbox.Usage{usage(0, func(u *sandbox.Usage) { u.CPUPercent = new(96.0) })}, PatternBusy},
		"one cumulative sample":       {[]sandbox.Usage{cpu(0, 100)}, PatternUnknown},
		"one memory sample":           {[]sandbox.Usage{mem(0, 100)}, PatternUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := TrendOf(tc.samples, DefaultThresholds())
			assert.Equal(t, tc.pattern, got.usagePattern(DefaultThresholds()))
			assert.Equal(t, len(tc.samples), got.Samples)
		})
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		samples []sandbox.Usage
		want    *float64
	}{
		"half a core":         {[]sandbox.Usage{cpu(0, 100), cpu(10, 105)}, new(50.0)},
		"in any order":        {[]sandbox.Usage{cpu(10, 105), cpu(0, 100)}, new(50.0)},
		"gaps":                {[]sandbox.Usage{cpu(0, 100), {At: noon().Add(time.Second)}, cpu(10, 105)}, new(50.0)},
		"zero is known":       {[]sandbox.Usage{cpu(0, 100), cpu(10, 100)}, new(0.0)},
		"one sample":          {[]sandbox.Usage{cpu(0, 100)}, nil},
		"same time":           {[]sandbox.Usage{cpu(0, 100), cpu(0, 200)}, nil},
		"reset":               {[]sandbox.Usage{cpu(0, 100), cpu(1, 1), cpu(2, 200)}, nil},
		"reset at the second": {[]sandbox.Usage{cpu(0, 100), cpu(1, 99)}, nil},
		"no time":             {[]sandbox.Usage{{CPUSeconds: new(1.0)}, cpu(1, 2)}, nil},
		"not a number":        {[]sandbox.Usage{cpu(0, math.NaN()), cpu(1, math.Inf(1))}, nil},
		"mean of given": {[]sandbox.Usage{
			usage(0, func(u *sandbox.Usage) { u.CPUPercent = new(10.0) }),
			usage(1, func(u *sandbox.Usage) { u.CPUPercent = new(30.0) }),
			usage(2, func(u *sandbox.Usage) { u.CPUPercent = new(math.NaN()) }),
		}, new(20.0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := TrendOf(tc.samples, DefaultThresholds()).CPUPercent
			if tc.want == nil {
				assert.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.InDelta(t, *tc.want, *got, 1e-9)
		})
	}
	got := TrendOf([]sandbox.Usage{ops(0, 0), ops(45, 150_000)}, DefaultThresholds()) // R44, R46
	assert.InDelta(t, 3333.3, *got.OperationsRate, 0.1)
}

func TestMemorySlope(t *testing.T) {
	t.Parallel()
	th := DefaultThresholds()
	for name, tc := range map[string]struct {
		samples []sandbox.Usage
		slope   float64
		leak    bool
	}{
		"two samples":         {[]sandbox.Usage{mem(0, 100), mem(60, 120)}, 20, true},
		"exactly the slope":   {[]sandbox.Usage{mem(0, 100), mem(60, 110)}, 10, true},
		"under the slope":     {[]sandbox.Usage{mem(0, 100), mem(60, 109)}, 9, false},
		"growth is noise":     {[]sandbox.Usage{mem(0, 100), mem(6, 103)}, 30, false},
		"growth just enough":  {[]sandbox.Usage{mem(0, 100), mem(6, 104)}, 40, true},
		"falls":               {[]sandbox.Usage{mem(0, 100), mem(60, 50)}, -50, false},
		"flat":                {[]sandbox.Usage{mem(0, 100), mem(30, 100), mem(60, 100)}, 0, false},
		"line":                {[]sandbox.Usage{mem(0, 100), mem(30, 115), mem(60, 130), mem(90, 145)}, 30, true},
		"saw of a collector":  {[]sandbox.Usage{mem(0, 100), mem(10, 150), mem(20, 100), mem(30, 150), mem(40, 100), mem(50, 160)}, 34.29, false},
		"no time is left out": {[]sandbox.Usage{{MemoryBytes: new(int64(0))}, mem(0, 100), mem(60, 120)}, 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := TrendOf(tc.samples, th)
			require.NotNil(t, got.MemorySlope)
			assert.InDelta(t, tc.slope, *got.MemorySlope, 0.01)
			assert.Equal(t, tc.leak, got.memoryGrows(th))
		})
	}
	one := TrendOf([]sandbox.Usage{mem(0, 100)}, th)
	assert.Nil(t, one.MemorySlope, "one sample has no slope, not a slope of 0")
	assert.Equal(t, int64(100*sandbox.MiB), *one.MemoryBytes)
	assert.Nil(t, TrendOf([]sandbox.Usage{mem(0, 100), mem(0, 200)}, th).MemorySlope)
}

func TestOOMCounterNeedsTwoSamples(t *testing.T) {
	t.Parallel()
	kills := func(n int64) sandbox.Usage { return usage(float64(n), func(u *sandbox.Usage) { u.OOMKills = &n }) }
	assert.Nil(t, TrendOf([]sandbox.Usage{kills(3)}, DefaultThresholds()).OOMKills)
	assert.Equal(t, int64(2), *TrendOf([]sandbox.Usage{kills(1), {At: noon()}, kills(3)}, DefaultThresholds()).OOMKills)
	falling := []sandbox.Usage{kills(3), kills(1)}
	falling[1].At = noon().Add(time.Hour)
	assert.Nil(t, TrendOf(falling, DefaultThresholds()).OOMKills)
}

func TestTrendKeepsTheLastReport(t *testing.T) {
	t.Parallel()
	got := TrendOf([]sandbox.Usage{
		usage(5, func(u *sandbox.Usage) { u.Source, u.Waiting = "cgroup2", "tcp 1.2.3.4:80" }),
		usage(0, func(u *sandbox.Usage) { u.MemoryLimitBytes, u.Waiting = new(int64(7)), "old" }),
	}, DefaultThresholds())
	assert.Equal(t, 5*time.Second, got.Span)
	assert.Equal(t, "tcp 1.2.3.4:80", got.Waiting)
	assert.Equal(t, "cgroup2", got.Source)
	assert.Equal(t, int64(7), *got.MemoryLimitBytes)
	assert.Zero(t, TrendOf([]sandbox.Usage{{}, mem(0, 1)}, DefaultThresholds()).Span, "a sample without a time has no place on a line")
}

func TestWaitsOutside(t *testing.T) {
	t.Parallel()
	for waiting, want := range map[string]bool{
		"tcp 10.0.0.1:443": true, "TCP6 [::1]:1": true, "udp x": true, "https api.example.com": true, "nfs": true,
		"": false, "sleep": false, "pipe": false, "futex": false, "tcpdump": false, "unix /run/x": false,
	} {
		assert.Equal(t, want, waitsOutside(waiting), "%q", waiting)
	}
}

func TestDemandTellsABusyLoopOnACrowdedMachine(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	sample := func(second, used, waited float64) sandbox.Usage {
		return sandbox.Usage{At: at.Add(time.Duration(second * float64(time.Second))), CPUSeconds: &used, Busiest: &sandbox.ThreadUsage{ID: "7", WantedSeconds: waited}}
	}
	limits := DefaultThresholds()
	crowded := TrendOf([]sandbox.Usage{sample(0, 0, 0), sample(1, 0.5, 0.98)}, limits)
	assert.InDelta(t, 50, *crowded.CPUPercent, 0.01)
	assert.InDelta(t, 98, *crowded.CPUDemand, 0.01)
	assert.True(t, crowded.AtLimit(limits))

	working := TrendOf([]sandbox.Usage{sample(0, 0, 0), sample(1, 0.5, 0.8)}, limits)
	assert.False(t, working.AtLimit(limits), "80 % of wanted processor is no busy loop")

	reset := TrendOf([]sandbox.Usage{sample(0, 0, 5), sample(1, 0.5, 0.1)}, limits)
	assert.Nil(t, reset.CPUDemand, "a thread that ended took its account along")
}

// TestDemandOfAThreadThatNeverSlept: on a starved machine a loop runs for a hundredth of the
// time, and the wait in which it is seen last is in no account.
func TestDemandOfAThreadThatNeverSlept(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	series := func(change func(last *sandbox.Usage)) Trend {
		var samples []sandbox.Usage
		for i := range 3 {
			samples = append(samples, sandbox.Usage{
				At: at.Add(time.Duration(i) * time.Second / 2), CPUSeconds: new(0.0025 * float64(i)),
				Busiest: &sandbox.ThreadUsage{ID: "7", WantedSeconds: 0.3 * float64(i), Runnable: true, Sleeps: new(int64(4))},
			})
		}
		change(&samples[2])
		return TrendOf(samples, DefaultThresholds())
	}
	loop := series(func(*sandbox.Usage) {})
	assert.InDelta(t, 0.5, *loop.CPUPercent, 0.01)
	assert.True(t, loop.AtLimit(DefaultThresholds()))
	for name, change := range map[string]func(last *sandbox.Usage){
		"it slept":        func(last *sandbox.Usage) { last.Busiest.Sleeps = new(int64(5)) },
		"it sleeps now":   func(last *sandbox.Usage) { last.Busiest.Runnable = false },
		"another thread":  func(last *sandbox.Usage) { last.Busiest.ID = "8" },
		"sleeps unknown":  func(last *sandbox.Usage) { last.Busiest.Sleeps = nil },
		"threads unknown": func(last *sandbox.Usage) { last.Busiest = nil },
	} {
		assert.False(t, series(change).AtLimit(DefaultThresholds()), name)
	}
}
