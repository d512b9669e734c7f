package triage

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// UsagePattern is what the usage of a sandbox looks like. The first three equal the cause
// of its Verdict, so that pattern and verdict never contradict each other.
type UsagePattern string

// The closed list of usage patterns.
const (
	PatternBusyLoop UsagePattern = "busy_loop" // the processor is at its limit without visible work (R47, R59)
	PatternHungIO   UsagePattern = "hung_io"   // the processor is idle and something outside is waited for (R48)
	PatternLeak     UsagePattern = "leak"      // memory fills up (R49)
	PatternBusy     UsagePattern = "busy"      // the processor is at its limit, with no evidence of a loop
	PatternIdle     UsagePattern = "idle"      // the processor is idle, and no operations (R48, R50)
	PatternSteady   UsagePattern = "steady"
	PatternUnknown  UsagePattern = "unknown"
)

// UsagePatterns lists every usage pattern.
func UsagePatterns() []UsagePattern {
	return []UsagePattern{PatternBusyLoop, PatternHungIO, PatternLeak, PatternBusy, PatternIdle, PatternSteady, PatternUnknown}
}

// Trend is computed from samples of usage. Nil means unknown; one sample gives no rate and
// no slope.
type Trend struct {
	Samples          int
	Span             time.Duration // from the first to the last sample
	At               time.Time     // of the last sample
	CPUPercent       *float64      // of one core
	NewestCPU        *float64      // of one core: what the source computed for the last sample
	BusyFor          time.Duration // how long, up to the last sample, the processor was at its limit in each sample
	CPUDemand        *float64      // of one core: what its busiest thread used, plus what it waited for a core
	OperationsRate   *float64      // per second
	MemoryBytes      *int64        // last reported
	MemoryLimitBytes *int64        // last reported
	TooShort         bool          // the samples span too little time for a slope of memory
	MemorySlope      *float64      // MiB per minute, by least squares; nil where TooShort
	MemorySource     string        // of the slope, where that is not Source
	NearLimitFor     time.Duration // how long, up to the last sample, memory was near its limit in each sample
	MemoryGrowth     *float64      // MiB between the minima of the first and the second half of the samples
	OOMKills         *int64        // growth of the counter over the samples
	Tasks            *int64        // last reported: processes and threads
	TasksRefused     *int64        // last reported, cumulative
	Waiting          string        // last reported, see sandbox.Usage
	Source           string        // last reported
}

// TrendOf accepts samples in any order.
func TrendOf(samples []sandbox.Usage, t Thresholds) Trend {
	samples = sortedByTime(samples)
	trend := Trend{Samples: len(samples)}
	for _, s := range samples {
		trend.MemoryBytes = cmp.Or(s.MemoryBytes, trend.MemoryBytes)
		trend.MemoryLimitBytes = cmp.Or(s.MemoryLimitBytes, trend.MemoryLimitBytes)
		trend.Tasks, trend.TasksRefused = cmp.Or(s.Tasks, trend.Tasks), cmp.Or(s.TasksRefused, trend.TasksRefused)
		trend.Source = cmp.Or(s.Source, trend.Source)
		trend.At, trend.Waiting, trend.NewestCPU = s.At, s.Waiting, nil
		if s.CPUPercent != nil && isFinite(*s.CPUPercent) {
			trend.NewestCPU = s.CPUPercent
		}
	}
	if len(samples) > 0 && !samples[0].At.IsZero() {
		trend.Span = trend.At.Sub(samples[0].At)
	}
	trend.CPUPercent = cpuPercent(samples)
	trend.BusyFor = busyFor(samples, t.CPUBusy)
	trend.CPUDemand = threadDemand(samples)
	trend.OperationsRate = counterRate(samples, func(s sandbox.Usage) *float64 { return toFloat(s.Operations) })
	trend.OOMKills = oomGrowth(samples)
	slope, growth, span := memoryTrend(samples)
	if span >= minSlopeSpan {
		trend.MemorySlope, trend.MemoryGrowth = slope, growth
	}
	trend.TooShort = trend.MemoryBytes != nil && trend.MemorySlope == nil
	trend.NearLimitFor = nearLimitFor(samples, t.MemoryNear)
	return trend
}

// earlierWindow is how far back the samples of earlier looks are used: as long as memory may take to
// be full for its growth to count as a leak.
const earlierWindow = fillsWithin

// AddEarlier completes the trend of memory by the samples of earlier looks, where those of this look
// alone show no growth: they span too little time, or memory goes up and down. Memory that has not
// gone on growing since the newest earlier sample has the slope since then: it has reached a plateau.
func (tr Trend) AddEarlier(earlier, samples []sandbox.Usage, t Thresholds) Trend {
	earlier = slices.DeleteFunc(sortedByTime(earlier), func(s sandbox.Usage) bool {
		return s.MemoryBytes == nil || tr.At.Sub(s.At) > earlierWindow || tr.At.Sub(s.At) < minSlopeSpan
	})
	if tr.MemoryBytes == nil || tr.memoryGrows(t) || len(earlier) == 0 {
		return tr
	}
	all := sortedByTime(slices.Concat(earlier, samples))
	slope, growth, _ := memoryTrend(all)
	newest := earlier[len(earlier)-1]
	most := *tr.MemoryBytes
	for _, s := range samples {
		most = max(most, *cmp.Or(s.MemoryBytes, &most))
	}
	since, _, _ := memoryTrend([]sandbox.Usage{newest, {At: tr.At, MemoryBytes: &most}})
	if slope == nil || since == nil {
		return tr
	}
	tr.MemorySlope, tr.MemoryGrowth, tr.TooShort = new(min(*slope, *since)), growth, false
	tr.MemorySource = "earlier looks"
	for i := range all {
		all[i].MemoryLimitBytes = cmp.Or(all[i].MemoryLimitBytes, tr.MemoryLimitBytes)
	}
	tr.NearLimitFor = nearLimitFor(all, t.MemoryNear)
	return tr
}

// nearLimitFor is how long, up to the last sample, memory was near its limit in each sample that
// reports it. One sample has no duration.
func nearLimitFor(samples []sandbox.Usage, near float64) time.Duration {
	var last, first time.Time
	for _, s := range slices.Backward(samples) {
		share, known := shareOf(s.MemoryBytes, s.MemoryLimitBytes)
		if !known || s.At.IsZero() {
			continue
		}
		if share < near {
			break
		}
		if last.IsZero() {
			last = s.At
		}
		first = s.At
	}
	return last.Sub(first)
}

// sortedByTime is a copy of the samples, the oldest first.
func sortedByTime(samples []sandbox.Usage) []sandbox.Usage {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b sandbox.Usage) int { return a.At.Compare(b.At) })
	return samples
}

func (tr Trend) usagePattern(t Thresholds) UsagePattern {
	ops := tr.OperationsRate
	switch {
	case tr.CPUPercent == nil && ops != nil && *ops == 0:
		return PatternIdle
	case tr.CPUPercent == nil:
		return PatternUnknown
	case tr.AtLimit(t):
		return PatternBusy
	case *tr.CPUPercent >= t.CPUIdle, ops != nil && *ops > 0 && tr.Waiting == "":
		return PatternSteady
	}
	return PatternIdle
}

// demandBusy, in percent of a core, is the demand of a thread that is always running or
// ready to run, and slept for moments. It is below 100, since the kernel accounts a wait when
// it ends: the last wait is missing.
const demandBusy = 85

// AtLimit reports whether the sandbox uses all the processor time it can get. On a machine
// with more work than cores that may be much less than one core, so a thread that is
// always running or ready to run counts as well.
func (tr Trend) AtLimit(t Thresholds) bool {
	return tr.CPUPercent != nil && *tr.CPUPercent >= t.CPUBusy || tr.CPUDemand != nil && *tr.CPUDemand >= demandBusy
}

// memoryGrows reports whether memory grows by more than noise, and either steeply or so
// that its limit is near.
func (tr Trend) memoryGrows(t Thresholds) bool {
	if tr.MemorySlope == nil || tr.MemoryGrowth == nil || *tr.MemoryGrowth < t.MemoryGrowth {
		return false
	}
	return *tr.MemorySlope >= t.MemorySlope || tr.fillsUp(t)
}

// memoryShare is the share of the memory limit in use; false when either is unknown.
func (tr Trend) memoryShare() (float64, bool) {
	return shareOf(tr.MemoryBytes, tr.MemoryLimitBytes)
}

// waitsOutside reports whether the thing waited for is outside the sandbox.
func waitsOutside(waiting string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(waiting), " ")
	switch kind {
	case "tcp", "tcp6", "udp", "udp6", "tls", "http", "https", "nfs":
		return true
	}
	return false
}

// cpuPercent is the mean of the percentages, where the source computed each: it leaves out what its own
// measurement costs. Else it uses the cumulative counter, or those percentages that there are.
func cpuPercent(samples []sandbox.Usage) *float64 {
	computed := !slices.ContainsFunc(samples, func(s sandbox.Usage) bool { return s.CPUPercent == nil })
	if r := counterRate(samples, func(s sandbox.Usage) *float64 { return s.CPUSeconds }); r != nil && !computed {
		return new(*r * 100)
	}
	var sum float64
	var n int
	for _, s := range samples {
		if s.CPUPercent != nil && isFinite(*s.CPUPercent) {
			sum += *s.CPUPercent
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

// busyFor is the duration of the last consecutive samples that all report at least so
// many percent of one core. A gap of more than maxSampleGap ends the series, since the
// load in the gap is unknown.
func busyFor(samples []sandbox.Usage, least float64) time.Duration {
	var last, first time.Time
	for _, s := range slices.Backward(samples) {
		if s.CPUPercent == nil || !isFinite(*s.CPUPercent) || *s.CPUPercent < least || s.At.IsZero() {
			break
		}
		if !first.IsZero() && first.Sub(s.At) > maxSampleGap {
			break
		}
		if last.IsZero() {
			last = s.At
		}
		first = s.At
	}
	return last.Sub(first)
}

// maxSampleGap is twice the longest sampling interval of a provider (E2B: 5 s; Daytona's
// telemetry: one minute).
const maxSampleGap = 2 * time.Minute

// threadDemand is how much of a core the busiest thread wanted. It is unknown when another
// thread becomes the busiest because it has lived longer, or when that thread has ended.
func threadDemand(samples []sandbox.Usage) *float64 {
	if neverSlept(samples) {
		return new(100.0)
	}
	wanted := counterRate(samples, func(s sandbox.Usage) *float64 {
		if s.Busiest == nil {
			return nil
		}
		return &s.Busiest.WantedSeconds
	})
	if wanted == nil {
		return nil
	}
	return new(*wanted * 100)
}

// neverSlept reports whether one thread was ready to run in each of several samples and has not
// gone to sleep between them. It then ran or waited for a processor all the time, however
// little of one a crowded machine gave it: the wait that lasts yet is in no account.
func neverSlept(samples []sandbox.Usage) bool {
	if len(samples) < 2 || samples[0].Busiest == nil || samples[0].Busiest.Sleeps == nil {
		return false
	}
	first := samples[0].Busiest
	return !slices.ContainsFunc(samples, func(s sandbox.Usage) bool {
		b := s.Busiest
		return b == nil || !b.Runnable || b.ID != first.ID || b.Sleeps == nil || *b.Sleeps != *first.Sleeps
	})
}

// counterRate is the growth per second of a cumulative counter between its first and last
// report. A counter that decreases was reset: its rate is unknown.
func counterRate(samples []sandbox.Usage, of func(sandbox.Usage) *float64) *float64 {
	var first, last *sandbox.Usage
	var from, to float64
	for i := range samples {
		v := of(samples[i])
		switch {
		case v == nil || !isFinite(*v) || samples[i].At.IsZero():
			continue
		case first == nil:
			first, from = &samples[i], *v
		case *v < to:
			return nil
		}
		last, to = &samples[i], *v
	}
	if first == nil || !last.At.After(first.At) {
		return nil
	}
	return new((to - from) / last.At.Sub(first.At).Seconds())
}

// oomGrowth is the growth of the OOM counter; it needs two samples.
func oomGrowth(samples []sandbox.Usage) *int64 {
	var first, last *int64
	for _, s := range samples {
		if s.OOMKills == nil {
			continue
		}
		if first == nil {
			first = s.OOMKills
			continue
		}
		last = s.OOMKills
	}
	if last == nil || *last < *first {
		return nil
	}
	return new(*last - *first)
}

// leastSquares is the slope of the best-fitting line; x needs two different values.
func leastSquares(x, y []float64) float64 {
	meanX, meanY := mean(x), mean(y)
	var above, below float64
	for i := range x {
		above += (x[i] - meanX) * (y[i] - meanY)
		below += (x[i] - meanX) * (x[i] - meanX)
	}
	return above / below
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func isFinite(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

func toFloat(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
