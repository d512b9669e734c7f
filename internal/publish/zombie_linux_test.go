package publish

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStateAndGroup(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]struct {
		state string
		group int
	}{
		"12 (sh) Z 1 12 12 0":        {"Z", 12},
		"13 (a) b) (c) S 1 14 14 0":  {"S", 14},
		"13 (torn":                   {"", 0},
		"":                           {"", 0},
		"13 (x) R 1":                 {"", 0},
		"13 (x) R 1 not-a-number 12": {"R", 0},
	} {
		state, group := stateAndGroup(stat)
		assert.Equal(t, want.state, state, stat)
		assert.Equal(t, want.group, group, stat)
	}
}
