// Package schedule chooses the schedules that a simulation plays: seeds, half of them fixed
// and half from a start that changes with each run, and every sequence of a bounded number
// of choices.
//
// Only tests use it. It knows nothing of what is simulated: a simulation asks for numbers.
package schedule

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Choices is one path through the tree of choices. It replays its prefix, then takes the
// first alternative everywhere, or a random one.
type Choices struct {
	chance *rand.Rand // nil = the first alternative
	prefix []int
	taken  []int
	width  []int
	limit  int
	bounds Bounds
}

// Replay returns the path that String printed.
func Replay(path string) (*Choices, error) {
	c := &Choices{limit: -1}
	for word := range strings.SplitSeq(path, ".") {
		if word == "" {
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is no path: %q is no choice", path, word)
		}
		c.prefix = append(c.prefix, n)
	}
	return c, nil
}

// Pick chooses one of n alternatives, 0 to n-1. Where the path is longer than the
// bound on depth, the first alternative is taken and not explored further.
func (c *Choices) Pick(n int) int {
	if n <= 1 {
		return 0
	}
	depth := len(c.taken)
	if c.limit >= 0 && depth >= c.limit {
		return 0
	}
	choice := 0
	switch {
	case depth < len(c.prefix):
		choice = min(c.prefix[depth], n-1)
	case c.chance != nil:
		choice = c.chance.IntN(n)
	}
	c.taken, c.width = append(c.taken, choice), append(c.width, n)
	return choice
}

// Replaying reports that the next choice belongs to the given path, and so was played
// before.
func (c *Choices) Replaying() bool { return len(c.taken) < len(c.prefix) }

// Depth is the number of choices made.
func (c *Choices) Depth() int { return len(c.taken) }

// Foreign reports that everything below belongs to another share: play may stop.
func (c *Choices) Foreign() bool { return c.bounds.skipsPath(c) }

// String is the path, for Replay.
func (c *Choices) String() string {
	words := make([]string, len(c.taken))
	for i, n := range c.taken {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ".")
}

// Number is the number in an environment variable, or otherwise where that is not set.
func Number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	word := os.Getenv(name) //nolint:forbidigo // for tests only
	if word == "" {
		return otherwise
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Bounds limit an exploration.
type Bounds struct {
	Depth int // choices on one path that are explored; later ones take the first alternative
	// Share and Shares split the tree below its first SplitDepth choices: only the
	// subtrees of one share are played. Shares 0 or 1 = everything.
	Share, Shares, SplitDepth int
}

// Explore calls play for each path through the tree of choices, depth first, until
// there is none left or play returns false. It returns the number of paths played.
//
// play must make the same choices when it is given the same path.
func Explore(b Bounds, play func(*Choices) bool) int {
	played := 0
	for path, left := (&Choices{limit: b.Depth, bounds: b}), true; left; path, left = path.nextPath(len(path.taken)) {
		if !play(path) {
			return played + 1
		}
		played++
		for b.skipsPath(path) {
			if path, left = path.nextPath(b.SplitDepth); !left {
				return played
			}
			// Only a run shows the width of a skipped path, so it is played, at most until the
			// run is Foreign.
			if !play(path) {
				return played + 1
			}
			played++
		}
	}
	return played
}

// Walk calls play for random paths from seed, until it has played that many or play returns
// false. Its cost is known beforehand, unlike that of a share: the subtrees of a tree have
// very different sizes.
func Walk(paths int, seed uint64, play func(*Choices) bool) {
	chance := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // schedules of a test, to be replayed
	for range paths {
		if !play(&Choices{limit: -1, chance: chance}) {
			return
		}
	}
}

// skipsPath reports whether the subtree of this path belongs to another share.
func (b Bounds) skipsPath(c *Choices) bool {
	if b.Shares <= 1 || len(c.taken) < b.SplitDepth {
		return false
	}
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, c.taken[:b.SplitDepth])
	return int(h.Sum32()%uint32(b.Shares)) != b.Share
}

// nextPath is the next path that differs within the first depth choices; false when there
// is none.
func (c *Choices) nextPath(depth int) (*Choices, bool) {
	for i := min(depth, len(c.taken)) - 1; i >= 0; i-- {
		if c.taken[i]+1 < c.width[i] {
			prefix := append(append([]int{}, c.taken[:i]...), c.taken[i]+1)
			return &Choices{prefix: prefix, limit: c.limit, bounds: c.bounds}, true
		}
	}
	return nil, false
}
