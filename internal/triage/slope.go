package triage

import (
	"math"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// cpuPercent prefers the cumulative counter over what the source worked out
// itself, of which it takes the mean.
func cpuPercent(samples []sandbox.Usage) *float64 {
	if r := rate(samples, func(s sandbox.Usage) *float64 { return s.CPUSeconds }); r != nil {
		return new(*r * 100)
	}
	var sum float64
	var n int
	for _, s := range samples {
		if s.CPUPercent != nil && sane(*s.CPUPercent) {
			sum += *s.CPUPercent
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

// busyFor is the time from the first to the last of those samples at the end that
// all report at least so many percent of one core. A gap of more than maxSampleGap
// breaks the run: nobody saw what the processor did in it.
func busyFor(samples []sandbox.Usage, least float64) time.Duration {
	var last, first time.Time
	for _, s := range slices.Backward(samples) {
		if s.CPUPercent == nil || !sane(*s.CPUPercent) || *s.CPUPercent < least || s.At.IsZero() {
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

// maxSampleGap is twice the widest step in which a provider gives samples of a few
// minutes (E2B: every 5 s; Daytona's telemetry: every minute).
const maxSampleGap = 2 * time.Minute

// demand is how much of a core the busiest thread wanted. When another thread
// becomes the busiest for having lived longer, or the account is lost with a
// thread that ended, it is not known.
func demand(samples []sandbox.Usage) *float64 {
	wanted := rate(samples, func(s sandbox.Usage) *float64 { return s.BusiestSeconds })
	if wanted == nil {
		return nil
	}
	return new(*wanted * 100)
}

// rate is the growth per second of a cumulative counter between its first and
// last report. A counter that ever falls was reset: its rate is not known.
func rate(samples []sandbox.Usage, of func(sandbox.Usage) *float64) *float64 {
	var first, last *sandbox.Usage
	var from, to float64
	for i := range samples {
		v := of(samples[i])
		switch {
		case v == nil || !sane(*v) || samples[i].At.IsZero():
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

// counted is the growth of the OOM counter; one sample proves none.
func counted(samples []sandbox.Usage) *int64 {
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

// minSlopeSpan is the shortest time over which memory has a slope. A program that
// allocates in steps, or collects garbage every second or so, looks like a leak of
// thousands of MiB per minute within a step; 5 s is also the finest step in which any
// provider keeps samples (E2B), so that a shorter look compares one figure with itself.
const minSlopeSpan = 5 * time.Second

// memory gives the slope in MiB per minute by least squares, by how many MiB the
// floor rose from the first half of the samples to the second, and the time that the
// samples span. The floor tells growth from a garbage collector's saw. Two samples at
// different times are needed.
func memory(samples []sandbox.Usage) (slope, growth *float64, span time.Duration) {
	var minutes, mib []float64
	var start time.Time
	for _, s := range samples {
		if s.MemoryBytes == nil || s.At.IsZero() {
			continue
		}
		if start.IsZero() {
			start = s.At
		}
		minutes = append(minutes, s.At.Sub(start).Minutes())
		mib = append(mib, float64(*s.MemoryBytes)/sandbox.MiB)
	}
	n := len(mib)
	if n < 2 || minutes[n-1] <= minutes[0] {
		return nil, nil, 0
	}
	span = time.Duration(minutes[n-1] * float64(time.Minute))
	return new(leastSquares(minutes, mib)), new(floor(mib[n/2:]) - floor(mib[:n/2])), span
}

// NeedsLongerLook says that memory may be filling up and the samples span too little
// time to tell: whoever takes them should go on. It turns false once they span enough.
func NeedsLongerLook(samples []sandbox.Usage) bool {
	t := DefaultThresholds()
	tr := TrendOf(samples, t)
	slope, _, span := memory(inOrder(samples))
	if slope == nil || span >= minSlopeSpan || *slope < t.MemorySlope {
		return false
	}
	tr.MemorySlope = slope
	return tr.fillsUp(t)
}

// fillsWithin is how soon memory must be full for its growth to be a leak that
// matters now: a sandbox is judged again within the runbook's stuck age (R26).
const fillsWithin = 10 * time.Minute

// fullIn is how long it takes until the limit is reached at this slope; false where
// the slope or the limit is not known, or nothing grows.
func (tr Trend) fullIn() (time.Duration, bool) {
	if tr.MemorySlope == nil || tr.MemoryBytes == nil || tr.MemoryLimitBytes == nil || *tr.MemorySlope <= 0 {
		return 0, false
	}
	left := max(0, float64(*tr.MemoryLimitBytes-*tr.MemoryBytes)/sandbox.MiB)
	minutes := left / *tr.MemorySlope
	if minutes > (1000 * time.Hour).Minutes() {
		return 0, false
	}
	return time.Duration(minutes * float64(time.Minute)), true
}

// fillsUp says that memory grows and is near its limit or will soon reach it.
func (tr Trend) fillsUp(t Thresholds) bool {
	left, known := tr.fullIn()
	if !known {
		return false
	}
	share, _ := tr.near()
	return left <= fillsWithin || share >= t.MemoryNear && *tr.MemorySlope >= t.MemorySlope
}

// leastSquares is the slope of the line that fits best; x has two different
// values at least.
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

func floor(values []float64) float64 {
	low := math.Inf(1)
	for _, v := range values {
		low = min(low, v)
	}
	return low
}

func sane(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}
