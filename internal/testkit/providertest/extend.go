package providertest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// How much earlier and later than asked an end may be: clocks are known to the second, and some APIs count minutes.
const (
	extendedEarlier = 3 * time.Second
	extendedLater   = 90 * time.Second
)

func checkExtend(t T, s *Subject) {
	e := requireAbility[providers.Extender](t, s)
	id := s.startSandbox(t, sandbox.Spec{TTL: 10 * time.Minute})
	get := func() sandbox.Sandbox {
		got, err := s.P.Get(s.callContext(t), id)
		require.NoError(t, err)
		return got
	}
	before := get()
	require.False(t, before.ExpiresAt.IsZero(), "a read shows when it ends")
	until := before.ExpiresAt.Add(20 * time.Minute)
	was, err := e.Extend(s.callContext(t), id, until)
	require.NoError(t, err)
	assert.Equal(t, before.ExpiresAt, was.ExpiresAt, "what was read before the request")
	now := get()
	assert.WithinRange(t, now.ExpiresAt, until.Add(-extendedEarlier), until.Add(extendedLater), "another read shows the later end")
	assert.Equal(t, before.State, now.State, "it runs on")
	assert.Equal(t, before.StartedAt, now.StartedAt, "it runs on, and was not started again")
	for _, sooner := range []time.Time{now.ExpiresAt, before.ExpiresAt, time.Now()} {
		was, err = e.Extend(s.callContext(t), id, sooner)
		assert.Equal(t, fault.KindRefused, fault.KindOf(err), "what is not later is refused: %v", err)
		assert.Empty(t, was.ID, "nothing was sent")
		assert.Equal(t, now.ExpiresAt, get().ExpiresAt, "it never ends sooner")
	}
	s.endSandbox(t, id)
	_, err = e.Extend(s.callContext(t), id, until.Add(time.Hour))
	require.Error(t, err, "what has ended is not extended")
}

func checkExtendWakesNothing(t T, s *Subject) {
	if s.c.Paused == nil {
		t.Skipf("%s knows no pause", s.P.Type())
	}
	id := s.c.Paused(t, s.P)
	_, err := requireAbility[providers.Extender](t, s).Extend(s.callContext(t), id, time.Now().Add(time.Hour))
	assert.Equal(t, fault.KindRefused, fault.KindOf(err), "%v", err)
	got, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StatePaused, got.State, "an extension woke a paused sandbox")
}
