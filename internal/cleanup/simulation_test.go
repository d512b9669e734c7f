package cleanup_test

import (
	"testing"

	"sbx/internal/testkit/schedule"
)

// TestSimulation runs bulk endings through seeded schedules of all faults: half of the
// seeds fixed, half from a random start. SBX_SEEDS=N plays that many, SBX_SEEDS_FROM=N
// fixes the start, SBX_SEED=n replays one and prints it.
func TestSimulation(t *testing.T) {
	t.Parallel()
	schedule.Simulate(t, "cleanup", knownSeeds(), mutation{}.play)
}

// knownSeeds are those that once broke a rule.
func knownSeeds() []uint64 {
	return []uint64{
		35755, 135824, 7700001615, 7700059016, // an id is reused, and the clock jumps: two observations of two sandboxes
		62889,              // the same, where the oracle took the observation for one of the first
		229765, 7700045146, // the second reading of the records fails for a stopped sandbox
		287992, 5130996117865659, // the same within minutes, by a clock that is behind
		244286, // an ended record belongs to an earlier sandbox with the id, and its successor is active
		13373,  // its usage hangs, and only its log may show that it works
		233799, // a resume ends what a plan names and its run did not count
	}
}

// play plays one seed with a planted mistake.
func (m mutation) play(seed uint64) *schedule.Trace {
	s := newSim(seed, m)
	s.play()
	return &s.Trace
}
