package triage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// UsagePattern is what several samples of usage look like together.
type UsagePattern string

// The closed list of usage patterns.
const (
	PatternBusyLoop UsagePattern = "busy_loop" // the processor is at its limit (ACCEPTANCE R47, R59)
	PatternHungIO   UsagePattern = "hung_io"   // the processor rests and something is waited for (R48)
	PatternLeak     UsagePattern = "leak"      // memory grows (R49)
	PatternIdle     UsagePattern = "idle"      // no operations (R50)
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
	MemorySlope      *float64      // MiB per minute, by least squares
	MemoryGrowth     *float64      // MiB by which the floor of the second half lies above that of the first
	OOMKills         *int64        // counter's growth over the samples
	Waiting          string        // last reported, see sandbox.Usage
	Source           string        // last reported
	Pattern          UsagePattern
	LikelyCause      sandbox.Cause
}

// TrendOf reads samples in any order.
func TrendOf(samples []sandbox.Usage, t Thresholds) Trend {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b sandbox.Usage) int { return a.At.Compare(b.At) })
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
	trend.MemorySlope, trend.MemoryGrowth = memory(samples)
	trend.Pattern = trend.pattern(t)
	trend.LikelyCause = trend.Pattern.cause()
	return trend
}

// pattern names what the figures look like. Growing memory comes first, since
// a leak keeps the processor busy too; a wait that was seen outweighs a count
// of operations.
func (tr Trend) pattern(t Thresholds) UsagePattern {
	switch {
	case tr.grows(t):
		return PatternLeak
	case tr.CPUPercent == nil:
		if tr.OperationsRate != nil && *tr.OperationsRate == 0 {
			return PatternIdle
		}
		return PatternUnknown
	case tr.atLimit(t):
		return PatternBusyLoop
	case *tr.CPUPercent >= t.CPUIdle:
		return PatternSteady
	case waitsOutside(tr.Waiting):
		return PatternHungIO
	case tr.Waiting != "":
		return PatternIdle // it waits, and not for the outside: a sleep, a lock, its own child
	case tr.OperationsRate == nil:
		return PatternHungIO // the runbook's reading of a bare 0 % (R48)
	case *tr.OperationsRate > 0:
		return PatternSteady
	}
	return PatternIdle
}

// demandSlack, in percent of a core, is what an account of waiting may miss: the
// kernel writes a wait down when it ends, so the last one is not in it yet.
const demandSlack = 10

// atLimit says that it takes all the processor it can get. On a machine with
// more work than cores that may be much less than one, so a thread that is never
// anything but running or ready to run counts as well.
func (tr Trend) atLimit(t Thresholds) bool {
	return tr.CPUPercent != nil && *tr.CPUPercent >= t.CPUBusy || tr.CPUDemand != nil && *tr.CPUDemand >= t.CPUBusy-demandSlack
}

func (tr Trend) grows(t Thresholds) bool {
	return tr.MemorySlope != nil && tr.MemoryGrowth != nil && *tr.MemorySlope >= t.MemorySlope && *tr.MemoryGrowth >= t.MemoryGrowth
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

// cause is what the runbook reads from a pattern. An idle program may be stuck
// or may wait for work, so it names no cause by itself.
func (p UsagePattern) cause() sandbox.Cause {
	switch p {
	case PatternBusyLoop:
		return sandbox.CauseBusyLoop
	case PatternHungIO:
		return sandbox.CauseHungIO
	case PatternLeak:
		return sandbox.CauseLeak
	case PatternSteady:
		return sandbox.CauseNone
	case PatternIdle, PatternUnknown:
		return sandbox.CauseUnknown
	}
	return sandbox.CauseUnknown
}
