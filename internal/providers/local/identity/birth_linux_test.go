package identity

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAChildLivesUntilItIsKilled(t *testing.T) {
	t.Parallel()
	c := cat(t)
	pid := c.Process.Pid
	text, err := Birth(pid)
	require.NoError(t, err)
	again, err := Birth(pid)
	require.NoError(t, err)
	assert.Equal(t, text, again)
	alive, err := Lives(pid, text)
	require.NoError(t, err)
	assert.True(t, alive)

	p, err := Of(pid)
	require.NoError(t, err)
	h, err := Open(p)
	require.NoError(t, err)
	closeLater(t, h)
	require.NoError(t, c.Process.Kill())
	require.NoError(t, h.Wait(t.Context()))
	_, err = Of(pid)
	require.NoError(t, err, "it is a zombie as long as nobody waits for it")
	alive, err = Lives(pid, text)
	require.NoError(t, err)
	assert.False(t, alive, "a zombie is dead")

	require.Error(t, c.Wait(), "killed")
	alive, err = Lives(pid, text)
	require.NoError(t, err)
	assert.False(t, alive, "its number is free")
}

func TestAnotherProcessOfTheSameNumberIsNotMeant(t *testing.T) {
	t.Parallel()
	pid := cat(t).Process.Pid
	text, err := Birth(pid)
	require.NoError(t, err)
	own, err := parseBirth(text)
	require.NoError(t, err)
	for name, change := range map[string]func(*birth){
		"born within the same tick": func(b *birth) { b.inode++ },
		"before inodes were kept":   func(b *birth) { b.inode, b.ticks = 0, b.ticks+1 },
		"in another boot":           func(b *birth) { b.boot = "00000000-0000-0000-0000-000000000000" },
	} {
		other := own
		change(&other)
		if name == "born within the same tick" && own.inode == 0 {
			continue // this kernel gives none
		}
		alive, err := Lives(pid, other.String())
		require.NoError(t, err, name)
		assert.False(t, alive, name)
	}
	started := own
	started.inode = 0
	alive, err := Lives(pid, started.String())
	require.NoError(t, err)
	assert.True(t, alive, "the start time tells where one side has no inode")
}

// A task's owner in another container of this machine has this boot and a PID that belongs to
// another process here.
func TestANumberOfAnotherNamespaceIsNotKnown(t *testing.T) {
	t.Parallel()
	c := cat(t)
	text, err := Birth(c.Process.Pid)
	require.NoError(t, err)
	b, err := parseBirth(text)
	require.NoError(t, err)
	require.NotZero(t, b.namespace)
	b.namespace++
	_, err = Lives(c.Process.Pid, b.String())
	require.ErrorIs(t, err, ErrBirth)
	b.boot = "00000000-0000-0000-0000-000000000000"
	alive, err := Lives(c.Process.Pid, b.String())
	require.NoError(t, err, "an earlier boot's namespaces are gone with it")
	assert.False(t, alive)
}

func TestNobodyHasNoBirth(t *testing.T) {
	t.Parallel()
	c := cat(t)
	text, err := Birth(c.Process.Pid)
	require.NoError(t, err)
	for _, pid := range []int{0, -1} {
		_, err := Birth(pid)
		require.Error(t, err)
		_, err = Lives(pid, text)
		require.Error(t, err)
	}
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	_, err = Birth(c.Process.Pid)
	require.ErrorIs(t, err, ErrDead)
}
