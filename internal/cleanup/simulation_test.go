package cleanup_test

import (
	"os"
	"testing"

	"sbx/internal/schedule"
)

// TestSimulation runs bulk endings through seeded schedules of everything that can
// go wrong: half of the seeds fixed, half from a start by chance. SBX_SEEDS=N runs that
// many, SBX_SEEDS_FROM=N fixes the start, SBX_SEED=n replays one and prints it.
func TestSimulation(t *testing.T) {
	t.Parallel()
	schedule.Simulate(t, "cleanup", os.Getenv, knownSeeds(), mutation{}.play)
}

// knownSeeds are those that once broke a rule.
func knownSeeds() []uint64 {
	return []uint64{
		35755, 135824, 7700001615, 7700059016, // an id is given again, and the clock jumps: two looks at two sandboxes
		62889,              // the same, where the oracle took the look for one at the first
		229765, 7700045146, // the records fail when they are read again for one that is stopped
		287992, 5130996117865659, // the same, made within minutes, by a clock that is behind
		244286, // a record that says ended is of the one that had the id before, and its successor works
		233799, // a resume ends what a plan names and its run did not count
	}
}

// play plays one seed with a planted mistake.
func (m mutation) play(seed uint64) *schedule.Trace {
	s := newSim(seed, m)
	s.play()
	return &s.Trace
}
