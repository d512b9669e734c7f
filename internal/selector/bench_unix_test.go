//go:build unix

package selector

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// BenchmarkHundredConditions is the budget of docs/PERFORMANCE.md over the names of sandboxes.
func BenchmarkHundredConditions(b *testing.B) {
	var conditions []Where
	for i := range 100 {
		w, err := ParseWhere(fmt.Sprintf(`state == "running" and age_seconds > %dm and (cpu_percent < %d%% or usage.memory_mb > %dM or labels.team == "b")`, i%60+1, i, i+100))
		if err != nil {
			b.Fatal(err)
		}
		conditions = append(conditions, w)
	}
	subjects := make([]*Subject, 10_000)
	for i := range subjects {
		subjects[i] = NewSubject(sandbox.Sandbox{
			State: sandbox.StateRunning, CreatedAt: noon().Add(-time.Duration(i%3600) * time.Second), Labels: map[string]string{"team": "a"},
		}, noon(), triage.Verdict{}, lookOf(float64(i%100)))
	}
	b.ReportAllocs()
	began := cpuTime(b)
	for b.Loop() {
		for _, s := range subjects {
			for _, w := range conditions {
				w.Eval(s)
			}
		}
	}
	b.ReportMetric(float64((cpuTime(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// cpuTime is the time that this process has had a processor, whatever else runs on the machine.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
