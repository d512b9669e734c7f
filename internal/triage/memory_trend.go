package triage

import (
	"fmt"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// minSlopeSpan is the shortest time over which memory has a slope. A program that
// allocates in steps, or collects garbage about every second, looks like a leak of
// thousands of MiB per minute within a step; 5 s is also the shortest sampling interval
// of any provider (E2B), so that a shorter period compares one sample with itself.
const minSlopeSpan = 5 * time.Second

// memoryTrend returns the slope in MiB per minute by least squares, by how many MiB the
// minimum rose from the first half of the samples to the second, and the time between
// first and last sample. The minimum distinguishes growth from garbage collection. Two
// samples at different times are needed.
func memoryTrend(samples []sandbox.Usage) (slope, growth *float64, span time.Duration) {
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
	return new(leastSquares(minutes, mib)), new(slices.Min(mib[n/2:]) - slices.Min(mib[:n/2])), span
}

// NeedsLongerLook reports whether memory may be filling up and the samples span too little
// time to decide: the caller should take more samples. It is false once they span enough.
func NeedsLongerLook(samples []sandbox.Usage) bool {
	t := DefaultThresholds()
	tr := TrendOf(samples, t)
	slope, _, span := memoryTrend(sortedByTime(samples))
	if slope == nil || span >= minSlopeSpan || *slope < t.MemorySlope {
		return false
	}
	tr.MemorySlope = slope
	return tr.fillsUp(t)
}

// fillsWithin is how soon memory must be full for its growth to count as a leak: a sandbox
// is judged again within the runbook's stuck age (R26).
const fillsWithin = 10 * time.Minute

// fullIn is the time until the limit is reached at this slope; false where the slope or
// the limit is unknown, or memory does not grow.
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

// MemoryPressure is "950 of 1024 MiB, full in 40s" where the memory of a running program fills up, or has been near its
// limit for long; "" where it does not, or that is not known.
func MemoryPressure(samples []sandbox.Usage, t Thresholds) string {
	tr := TrendOf(samples, t)
	f := flagMemoryPressure(sandbox.Sandbox{State: sandbox.StateRunning}, Signals{Trend: &tr}, t)
	if f.Verdict != sandbox.True || f.Severity != Warning {
		return ""
	}
	text := fmt.Sprintf("%d of %d MiB", *tr.MemoryBytes/sandbox.MiB, *tr.MemoryLimitBytes/sandbox.MiB)
	if left, grows := tr.fullIn(); grows && left >= time.Second && tr.fillsUp(t) {
		text += ", full in " + sandbox.FormatElapsed(left.Round(time.Second))
	}
	return text
}

// fillsUp reports whether memory grows and is near its limit or will reach it soon.
func (tr Trend) fillsUp(t Thresholds) bool {
	left, known := tr.fullIn()
	if !known {
		return false
	}
	share, _ := tr.memoryShare()
	return left <= fillsWithin || share >= t.MemoryNear && *tr.MemorySlope >= t.MemorySlope
}
