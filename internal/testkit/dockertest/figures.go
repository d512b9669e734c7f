package dockertest

import (
	"net/http"
	"time"

	"sbx/internal/testkit/wiretest"
)

// Figures are the statistics of a container.
type Figures struct {
	CPUPercent         float64 // of one core
	MemoryMiB          float64 // the working set at the time when the figures are set
	MemoryMiBPerMinute float64 // its growth since then
	LimitMiB           float64 // 0 = none
}

// usage is the use of resources of a container, from a moment on.
type usage struct {
	Figures

	since time.Time
	used  time.Duration // the processor time until then
}

// Show sets the statistics of a container.
func (f *Fake) Show(id string, figures Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.find(id)
	b.usage = &usage{figures, f.o.Now(), f.processorTime(b)}
	b.host["Memory"] = figures.LimitMiB * (1 << 20)
}

// processorTime is what a container has used of the processor so far. The lock is held.
func (f *Fake) processorTime(b *box) time.Duration {
	now := f.o.Now()
	switch {
	case b.usage != nil:
		return b.usage.used + time.Duration(float64(now.Sub(b.usage.since))*b.usage.CPUPercent/100)
	case f.o.Rests:
		return 0
	}
	return now.Sub(b.started) / 10
}

// workingSet is the memory of a container without its page cache, at most its limit. The lock is held.
func (f *Fake) workingSet(b *box, limit int64) int64 {
	if b.usage == nil {
		return 20 << 20
	}
	used := b.usage.MemoryMiB + b.usage.MemoryMiBPerMinute*f.o.Now().Sub(b.usage.since).Minutes()
	return min(int64(used*(1<<20)), limit)
}

func (f *Fake) serveStats(w http.ResponseWriter, _ *http.Request, b *box) {
	const cache = 10 << 20
	used, limit := f.processorTime(b).Nanoseconds(), int64(16<<30)
	if n, ok := b.host["Memory"].(float64); ok && n > 0 {
		limit = int64(n)
	}
	working := f.workingSet(b, limit)
	if f.o.NoGroups {
		working = 9 << 30 // of the host
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"id": b.id, "name": "/" + b.name, "read": stamp(f.o.Now()), "preread": neverStarted, "pids_stats": map[string]any{"current": 2}, "num_procs": 0,
		"cpu_stats":    map[string]any{"cpu_usage": map[string]any{"total_usage": used, "usage_in_kernelmode": 0, "usage_in_usermode": used}, "system_cpu_usage": 1, "online_cpus": 2},
		"memory_stats": map[string]any{"usage": working + cache, "limit": limit, "stats": map[string]any{"inactive_file": cache}},
	})
}
