package task

import (
	"context"
	"slices"
	"time"

	"sbx/internal/poll"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

const (
	memoryFirstLook = 5 * time.Second  // the shortest time between two samples of E2B
	memoryCalm      = 10 * time.Second // between two samples while memory is below the half of its limit
	memoryClose     = 2 * time.Second  // and above it
	memoryWindow    = 20 * time.Second // what is older does not count
	memoryToldAgain = time.Minute
)

// watchMemory tells the operator that a program's memory is about to be full, before the kernel kills it. Where the
// provider reports no memory or no limit, it ends. counts is false where a sample has none of the figures that the
// record of an attempt has.
func (r *Runner) watchMemory(ctx context.Context, ref sandbox.Ref) (counts bool) {
	var samples []sandbox.Usage
	var told time.Time
	counts = true
	for pause := memoryFirstLook; poll.Sleep(ctx, pause) == nil; {
		u := r.lastUsage(ctx, ref)
		counts = !u.HasProcessor() || u.OOMKills != nil || u.MemoryPeakBytes != nil
		if u.MemoryBytes == nil || u.MemoryLimitBytes == nil {
			return counts
		}
		old := u.At.Add(-memoryWindow) // by the clock of the provider
		samples = append(slices.DeleteFunc(samples, func(s sandbox.Usage) bool { return s.At.Before(old) }), u)
		if pause = memoryCalm; *u.MemoryBytes <= *u.MemoryLimitBytes/2 {
			continue // most programs grow when they start
		}
		pause = memoryClose
		if text := triage.MemoryPressure(samples, triage.DefaultThresholds()); text != "" && time.Since(told) > memoryToldAgain {
			told = time.Now()
			r.sendMessage("its memory is filling up: " + text)
		}
	}
	return counts
}
