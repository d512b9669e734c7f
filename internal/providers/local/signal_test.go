//go:build unix

package local_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Many programs take a second TERM as the order to drop everything: one request
// is one signal to each process, whether the cgroup holds it or not.
func TestTermComesOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{self(), programArg, "count"}})
	b.waitFor(t, s.ID, "up")
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Grace: 500 * time.Millisecond, FullGrace: true, By: "test"}))
	assert.Equal(t, 1, strings.Count(b.output(t, s.ID), "asked"))
}

// A shell blocks all signals while it forks, and on a machine under load it may stay so for
// long: that is no program that ignores TERM.
func TestABlockedTermIsNotIgnored(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the program that blocks TERM needs Linux")
	}
	b := newBench(t)
	s := b.create(t, sandbox.Spec{Command: []string{self(), programArg, "blocked"}})
	b.waitFor(t, s.ID, "up")
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Grace: 10 * time.Second, By: "test"}))
	assert.Contains(t, b.output(t, s.ID), "bye")
}

// A tree of both kinds gets its grace while one of its processes handles TERM.
func TestOneThatHearsBuysTimeForAll(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.sh(t, `trap "" TERM; (trap 'sleep 0.02; echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done); echo alone; sleep 600`)
	b.waitFor(t, s.ID, "up")
	require.NoError(t, b.Terminate(t.Context(), s.ID, providers.TerminateOptions{Grace: time.Minute, By: "test"}))
	assert.Contains(t, b.output(t, s.ID), "bye")
	got, err := b.Get(t.Context(), s.ID)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateTerminated, got.State)
	assert.Less(t, got.EndedAt.Sub(b.record(t, s.ID).Exit.Stop.At), 50*time.Second, "a process that ignores TERM buys no time for itself")
	nothingLeft(t, s.ID)
}
