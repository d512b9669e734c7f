package e2b_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/e2b"
	"sbx/internal/providers/e2b/e2btest"
	"sbx/internal/sandbox"
)

func TestWhatWasSeenIsNotReadAgain(t *testing.T) {
	t.Parallel()
	fake := e2btest.New(t, e2btest.Options{})
	p := open(t, fake, e2b.Type())
	id, paused := fake.Add(e2btest.Seed{}), fake.Add(e2btest.Seed{Paused: true})

	err := p.Terminate(t.Context(), paused, providers.TerminateOptions{Seen: &sandbox.Sandbox{ID: paused, State: sandbox.StatePaused}})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "its snapshot would die")
	assert.Empty(t, fake.Calls(""))

	err = p.Terminate(t.Context(), paused, providers.TerminateOptions{})
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "nobody has looked, so it looks itself")
	assert.Len(t, fake.Calls(""), 1)
	assert.Zero(t, fake.Changes())

	require.NoError(t, p.Terminate(t.Context(), id, providers.TerminateOptions{Seen: &sandbox.Sandbox{ID: id, State: sandbox.StateRunning}}))
	assert.Len(t, fake.Calls(""), 2, "the request alone")
}
