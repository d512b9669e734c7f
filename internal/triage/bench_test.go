package triage

import (
	"testing"
	"time"
)

// BenchmarkJudgeByRecord is what each row of a listing costs.
func BenchmarkJudgeByRecord(b *testing.B) {
	s, t, now := old(time.Hour), DefaultThresholds(), noon()
	b.ReportAllocs()
	for b.Loop() {
		Judge(s, Signals{}, t, now)
	}
}
