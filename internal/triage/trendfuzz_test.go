package triage

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
	"time"

	"sbx/internal/sandbox"
)

// samplesFrom reads samples out of fuzz bytes: each a moment, a processor
// figure and a memory figure, any of which may be missing.
func samplesFrom(data []byte) []sandbox.Usage {
	var out []sandbox.Usage
	for chunk := range slices.Chunk(data, 18) {
		if len(chunk) < 18 {
			break
		}
		u := sandbox.Usage{Source: "fuzz"}
		if chunk[0]&1 != 0 {
			u.At = noon().Add(time.Duration(binary.LittleEndian.Uint16(chunk)) * time.Second)
		}
		if chunk[0]&2 != 0 {
			u.CPUSeconds = new(math.Float64frombits(binary.LittleEndian.Uint64(chunk[2:])))
		}
		if chunk[0]&4 != 0 {
			u.MemoryBytes = new(int64(binary.LittleEndian.Uint64(chunk[10:]) >> 1))
		}
		out = append(out, u)
	}
	return out
}

func FuzzTrendOf(f *testing.F) {
	f.Add(make([]byte, 36))
	f.Add([]byte("\x07\x00aaaaaaaabbbbbbbb\x07\x01ccccccccdddddddd\x0f\x02eeeeeeeeffffffff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		samples := samplesFrom(data)
		got := TrendOf(samples, DefaultThresholds())
		for name, v := range map[string]*float64{"cpu": got.CPUPercent, "slope": got.MemorySlope, "growth": got.MemoryGrowth} {
			if v != nil && (math.IsNaN(*v) || len(samples) < 2) {
				t.Fatalf("%s is %v from %d samples", name, *v, len(samples))
			}
		}
		if got.CPUPercent != nil && *got.CPUPercent < 0 {
			t.Fatalf("negative processor use %v", *got.CPUPercent)
		}
		pattern := got.usagePattern(DefaultThresholds())
		if pattern == PatternUnknown && got.CPUPercent != nil || pattern == "" {
			t.Fatalf("pattern %q with %v", pattern, got.CPUPercent)
		}
		slices.Reverse(samples)
		if again := TrendOf(samples, DefaultThresholds()); distinct(samples) && again.usagePattern(DefaultThresholds()) != pattern {
			t.Fatalf("the order of samples matters: %q, %q", pattern, again.usagePattern(DefaultThresholds()))
		}
	})
}

// distinct says that no two samples share a moment, so that their order is
// given.
func distinct(samples []sandbox.Usage) bool {
	seen := map[time.Time]bool{}
	for _, s := range samples {
		if seen[s.At] {
			return false
		}
		seen[s.At] = true
	}
	return true
}
