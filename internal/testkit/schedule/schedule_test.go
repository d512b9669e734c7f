package schedule_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/schedule"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestHalfOfTheSeedsIsFixedAndHalfStartsByChance(t *testing.T) {
	t.Parallel()
	s, err := schedule.ReadSeeds(env(nil), func() uint64 { return 1 << 20 }, []uint64{3, 900}, 8)
	require.NoError(t, err)
	require.Equal(t, []uint64{3, 900, 1, 2, 4, 512, 513, 514, 515}, slices.Collect(s.All()))
	var shared []uint64
	for batch := range 3 {
		shared = slices.AppendSeq(shared, s.Batch(batch, 3))
	}
	require.ElementsMatch(t, slices.Collect(s.All()), shared)
}

func TestTheEnvironmentFixesTheStart(t *testing.T) {
	t.Parallel()
	s, err := schedule.ReadSeeds(env(map[string]string{"SBX_SEEDS": "4", "SBX_SEEDS_FROM": "7"}), func() uint64 { return 99 << 11 }, nil, 100)
	require.NoError(t, err)
	require.Equal(t, []uint64{1, 2, 7, 8}, slices.Collect(s.All()))
	require.Contains(t, s.String(), "SBX_SEEDS_FROM=7")
	for _, word := range []string{"-1", "x", "1.5"} {
		_, err = schedule.ReadSeeds(env(map[string]string{"SBX_SEEDS_FROM": word}), func() uint64 { return 0 }, nil, 1)
		require.ErrorContains(t, err, "SBX_SEEDS_FROM")
	}
}

// paths plays a tree whose width differs from branch to branch.
func paths(b schedule.Bounds) []string {
	var seen []string
	schedule.Explore(b, func(c *schedule.Choices) bool {
		if c.Pick(3) == 1 {
			c.Pick(2)
		} else {
			c.Pick(1)
			c.Pick(2)
			c.Pick(2)
		}
		seen = append(seen, c.String())
		return true
	})
	return seen
}

func TestEveryPathIsPlayedOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"0.0.0", "0.0.1", "0.1.0", "0.1.1", "1.0", "1.1", "2.0.0", "2.0.1", "2.1.0", "2.1.1"}, paths(schedule.Bounds{Depth: 10}))
	require.Equal(t, []string{"0.0", "0.1", "1.0", "1.1", "2.0", "2.1"}, paths(schedule.Bounds{Depth: 2}))
}

func TestTheSharesCoverTheTree(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for share := range 3 {
		for _, path := range paths(schedule.Bounds{Depth: 10, Share: share, Shares: 3, SplitDepth: 2}) {
			seen[path] = true
		}
	}
	require.Len(t, seen, 10)
	require.Less(t, len(paths(schedule.Bounds{Depth: 10, Share: 1, Shares: 3, SplitDepth: 2})), 10)
}

func TestForeignSharesNeedNotBePlayed(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for share := range 3 {
		schedule.Explore(schedule.Bounds{Depth: 10, Share: share, Shares: 3, SplitDepth: 2}, func(c *schedule.Choices) bool {
			for range 4 {
				if c.Pick(2); c.Foreign() {
					require.Equal(t, 2, c.Depth())
					return true
				}
			}
			seen[c.String()]++
			return true
		})
	}
	require.Len(t, seen, 16)
	for path, times := range seen {
		require.Equal(t, 1, times, path)
	}
}

func TestAPathIsReplayed(t *testing.T) {
	t.Parallel()
	c, err := schedule.Replay("2.1")
	require.NoError(t, err)
	require.True(t, c.Replaying())
	require.Equal(t, []int{2, 1}, []int{c.Pick(3), c.Pick(2)})
	require.False(t, c.Replaying())
	require.Zero(t, c.Pick(2))
	require.Equal(t, "2.1.0", c.String())
	_, err = schedule.Replay("2.x")
	require.Error(t, err)
}

func TestPlayCanStopTheExploration(t *testing.T) {
	t.Parallel()
	require.Equal(t, 2, schedule.Explore(schedule.Bounds{Depth: 4}, func(c *schedule.Choices) bool {
		c.Pick(2)
		c.Pick(2)
		return c.String() != "0.1"
	}))
}

func TestAWalkIsReplayedByItsSeed(t *testing.T) {
	t.Parallel()
	walk := func(seed uint64, paths int) (seen []string) {
		schedule.Walk(20, seed, func(c *schedule.Choices) bool {
			for range 8 {
				c.Pick(3)
			}
			seen = append(seen, c.String())
			return len(seen) < paths
		})
		return seen
	}
	seen := walk(7, 20)
	require.Equal(t, seen, walk(7, 20))
	require.NotEqual(t, seen, walk(8, 20))
	require.Len(t, seen, 20)
	require.Len(t, walk(7, 3), 3, "play ends the walk")
	replayed, err := schedule.Replay(seen[4])
	require.NoError(t, err)
	for range 8 {
		replayed.Pick(3)
	}
	require.Equal(t, seen[4], replayed.String())
}
