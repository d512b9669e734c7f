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

// memory gives the slope in MiB per minute by least squares, and by how many
// MiB the floor rose from the first half of the samples to the second. The
// floor tells growth from a garbage collector's saw. Two samples at different
// times are needed.
func memory(samples []sandbox.Usage) (slope, growth *float64) {
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
		return nil, nil
	}
	return new(leastSquares(minutes, mib)), new(floor(mib[n/2:]) - floor(mib[:n/2]))
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
