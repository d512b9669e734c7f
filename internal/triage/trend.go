package triage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// UsagePattern is what the use of a sandbox looks like. The first three are those of
// its Verdict, so that a pattern never contradicts it.
type UsagePattern string

// The closed list of usage patterns.
const (
	PatternBusyLoop UsagePattern = "busy_loop" // the processor is at its limit, for nothing (ACCEPTANCE R47, R59)
	PatternHungIO   UsagePattern = "hung_io"   // the processor rests and something is waited for (R48)
	PatternLeak     UsagePattern = "leak"      // memory fills up (R49)
	PatternBusy     UsagePattern = "busy"      // the processor is at its limit, and nothing says that it is for nothing
	PatternIdle     UsagePattern = "idle"      // the processor rests, and no operations (R48, R50)
	PatternSteady   UsagePattern = "steady"
	PatternUnknown  UsagePattern = "unknown"
)

// Trend is what samples of usage say together. Nil means not known; one sample
// gives no rate and no slope.
type Trend struct {
	Samples          int
	Span             time.Duration // from the first to the last sample
	At               time.Time     // of the last sample
	CPUPercent       *float64      // of one core
	BusyFor          time.Duration // how long, up to the last sample, each found the processor at its limit
	CPUDemand        *float64      // of one core: what its busiest thread used and was kept from by others
	OperationsRate   *float64      // per second
	MemoryBytes      *int64        // last reported
	MemoryLimitBytes *int64        // last reported
	TooShort         bool          // the samples span too little time for a slope of memory
	MemorySlope      *float64      // MiB per minute, by least squares; nil where TooShort
	MemoryGrowth     *float64      // MiB by which the floor of the second half lies above that of the first
	OOMKills         *int64        // counter's growth over the samples
	Waiting          string        // last reported, see sandbox.Usage
	Source           string        // last reported
}

// TrendOf reads samples in any order.
func TrendOf(samples []sandbox.Usage, t Thresholds) Trend {
	samples = inOrder(samples)
	trend := Trend{Samples: len(samples)}
	for _, s := range samples {
		trend.MemoryBytes = cmp.Or(s.MemoryBytes, trend.MemoryBytes)
		trend.MemoryLimitBytes = cmp.Or(s.MemoryLimitBytes, trend.MemoryLimitBytes)
		trend.Source = cmp.Or(s.Source, trend.Source)
		trend.At, trend.Waiting = s.At, s.Waiting
	}
	if len(samples) > 0 && !samples[0].At.IsZero() {
		trend.Span = trend.At.Sub(samples[0].At)
	}
	trend.CPUPercent = cpuPercent(samples)
	trend.BusyFor = busyFor(samples, t.CPUBusy)
	trend.CPUDemand = demand(samples)
	trend.OperationsRate = rate(samples, func(s sandbox.Usage) *float64 { return float(s.Operations) })
	trend.OOMKills = counted(samples)
	slope, growth, span := memory(samples)
	if span >= minSlopeSpan {
		trend.MemorySlope, trend.MemoryGrowth = slope, growth
	}
	trend.TooShort = trend.MemoryBytes != nil && trend.MemorySlope == nil
	return trend
}

// inOrder is a copy of the samples, the oldest first.
func inOrder(samples []sandbox.Usage) []sandbox.Usage {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b sandbox.Usage) int { return a.At.Compare(b.At) })
	return samples
}

// pattern names what the figures look like by themselves: whether it works.
func (tr Trend) pattern(t Thresholds) UsagePattern {
	ops := tr.OperationsRate
	switch {
	case tr.CPUPercent == nil && ops != nil && *ops == 0:
		return PatternIdle
	case tr.CPUPercent == nil:
		return PatternUnknown
	case tr.atLimit(t):
		return PatternBusy
	case *tr.CPUPercent >= t.CPUIdle, ops != nil && *ops > 0 && tr.Waiting == "":
		return PatternSteady
	}
	return PatternIdle
}

// demandBusy, in percent of a core, is from where on a thread is never anything but
// running or ready to run. It is less than all, since the kernel writes a wait down
// when it ends: the last one is not in its account yet.
const demandBusy = 85

// atLimit says that it takes all the processor it can get. On a machine with
// more work than cores that may be much less than one, so a thread that is never
// anything but running or ready to run counts as well.
func (tr Trend) atLimit(t Thresholds) bool {
	return tr.CPUPercent != nil && *tr.CPUPercent >= t.CPUBusy || tr.CPUDemand != nil && *tr.CPUDemand >= demandBusy
}

// grows says that memory grows by more than noise, and either steeply or so that its
// limit is near.
func (tr Trend) grows(t Thresholds) bool {
	if tr.MemorySlope == nil || tr.MemoryGrowth == nil || *tr.MemoryGrowth < t.MemoryGrowth {
		return false
	}
	return *tr.MemorySlope >= t.MemorySlope || tr.fillsUp(t)
}

// near gives the share of the memory limit that is in use; false when either
// is not known.
func (tr Trend) near() (float64, bool) {
	if tr.MemoryBytes == nil || tr.MemoryLimitBytes == nil || *tr.MemoryLimitBytes <= 0 {
		return 0, false
	}
	return float64(*tr.MemoryBytes) / float64(*tr.MemoryLimitBytes), true
}

// waitsOutside says that what a program waits on lies outside the sandbox.
func waitsOutside(waiting string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(waiting), " ")
	switch kind {
	case "tcp", "tcp6", "udp", "udp6", "tls", "http", "https", "nfs":
		return true
	}
	return false
}
