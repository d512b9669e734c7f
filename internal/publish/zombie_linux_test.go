package publish

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
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

func TestOnlyZombies(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = ownGroup()
	require.NoError(t, cmd.Start())
	group := cmd.Process.Pid
	assert.True(t, groupLives(group))
	killGroup(group)
	require.Eventually(t, func() bool { return onlyZombies(group) }, tiertest.Limit(t), time.Millisecond, "it is dead and nobody has waited for it")
	assert.False(t, groupLives(group))
	require.Error(t, cmd.Wait())
	assert.False(t, onlyZombies(group), "nothing is left, which is another thing")
}
