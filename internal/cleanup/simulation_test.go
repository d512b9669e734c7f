package cleanup_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestSimulation runs bulk endings through seeded schedules of everything that can
// go wrong. SBX_SEEDS=N runs that many, SBX_SEED=n replays one and prints it.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if word := os.Getenv("SBX_SEED"); word != "" {
		seed, err := strconv.ParseUint(word, 10, 64)
		require.NoError(t, err)
		s := simulate(t, seed, mutation{})
		t.Log(s.report())
		if len(s.wrong) > 0 {
			t.Fail()
		}
		return
	}
	seeds := uint64(500)
	if word := os.Getenv("SBX_SEEDS"); word != "" {
		n, err := strconv.ParseUint(word, 10, 64)
		require.NoError(t, err)
		seeds = n
	}
	const batches = 8
	for batch := range uint64(batches) {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			for seed := 1 + batch; seed <= seeds && !t.Failed(); seed += batches {
				if s := simulate(t, seed, mutation{}); len(s.wrong) > 0 {
					t.Error(s.report())
				}
			}
		})
	}
}

// simulate plays one seed.
func simulate(t *testing.T, seed uint64, mut mutation) *sim {
	t.Helper()
	var s *sim
	synctest.Test(t, func(*testing.T) {
		s = newSim(seed, mut)
		s.play()
	})
	return s
}
