package schedule

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Trace is what one simulated schedule did, and which rules it broke. Its caller
// serializes Logf and Breakf.
type Trace struct {
	Seed   uint64
	Began  time.Time
	Steps  []string
	Broken []string // rules
}

// Roll gives the same number in [0,1) for the same words, in whatever order they are
// asked for.
func (t *Trace) Roll(words ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, t.Seed)
	for _, w := range words {
		fmt.Fprint(h, "|", w)
	}
	x := h.Sum64()
	x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd
	x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53
	return float64((x^(x>>33))>>11) / (1 << 53)
}

// Logf adds one step.
func (t *Trace) Logf(format string, args ...any) {
	t.Steps = append(t.Steps, fmt.Sprintf("%9.3fs  ", time.Since(t.Began).Seconds())+fmt.Sprintf(format, args...))
}

// Breakf adds a broken rule.
func (t *Trace) Breakf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.Logf("WRONG: %s", text)
	t.Broken = append(t.Broken, text)
}

// Report says how to replay the schedule, and lists broken rules and steps. room is the
// package of the simulation, below internal.
func (t *Trace) Report(room string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks %d rules; replay it with\n  %s=%d go test -count=1 -run '^TestSimulation$' ./internal/%s\n", t.Seed, len(t.Broken), EnvSeed, t.Seed, room)
	for _, w := range t.Broken {
		fmt.Fprintln(&b, "  - "+w)
	}
	fmt.Fprintln(&b, "the schedule:")
	for i, step := range t.Steps {
		fmt.Fprintf(&b, "%4d %s\n", i+1, step)
	}
	return b.String()
}

// Sleep lets virtual time pass; false = ctx has ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Pick chooses one of the values.
func Pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// Play plays one seed in a synctest bubble.
func Play(t *testing.T, seed uint64, play func(seed uint64) *Trace) (trace *Trace) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { trace = play(seed) })
	return trace
}

// read is ReadSeeds of this process.
func read(t *testing.T, known []uint64, total uint64) Seeds {
	t.Helper()
	seeds, err := ReadSeeds(os.Getenv, rand.Uint64, known, total) //nolint:forbidigo // for tests only
	if err != nil {
		t.Fatal(err)
	}
	t.Log(seeds)
	return seeds
}

// Worlds plays each seed of one run as a subtest in a bubble of its own; one of so many, where every is over 1.
func Worlds(t *testing.T, known []uint64, total uint64, every int, play func(t *testing.T, seed uint64)) {
	t.Helper()
	n := 0
	for seed := range read(t, known, total).All() {
		if n++; n%every == 0 || Replays() {
			t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { play(t, seed) }) })
		}
	}
}

// Replays reports that one seed is replayed.
func Replays() bool { return os.Getenv(EnvSeed) != "" } //nolint:forbidigo // for tests only

// Simulate plays the seeds of one run, each in a synctest bubble, and stops at the first
// that breaks a rule. A replay prints its report.
func Simulate(t *testing.T, room string, known []uint64, play func(seed uint64) *Trace) {
	t.Helper()
	seeds := read(t, known, DefaultSeeds)
	var found atomic.Bool
	const batches = 8
	for batch := range batches {
		t.Run(strconv.Itoa(batch), func(t *testing.T) {
			t.Parallel()
			for seed := range seeds.Batch(batch, batches) {
				if found.Load() {
					return
				}
				trace := Play(t, seed, play)
				if len(trace.Broken) > 0 {
					found.Store(true)
					t.Fatal(trace.Report(room))
				}
				if Replays() {
					t.Log(trace.Report(room))
				}
			}
		})
	}
}
