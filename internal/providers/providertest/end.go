package providertest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func endChecks() []Check {
	return []Check{
		{"terminate_ends", "", terminateEnds},
		{"terminate_with_delete_leaves_nothing", "", terminateDeletes},
		{"terminate_twice_is_gone", "", terminateTwice},
		{"terminate_ends_one_only", "", terminateOne},
		{"ended_is_not_listed_as_running", "", endedListed},
	}
}

func terminateEnds(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	s.end(t, id)
	got, err := s.P.Get(s.context(t), id)
	assert.True(t, over(got, err), "an end is for good: %q, %v", got.State, err)
	if err == nil {
		assert.Equal(t, id, got.ID)
	}
}

func terminateDeletes(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	require.NoError(t, s.P.Terminate(s.context(t), id, providers.TerminateOptions{Delete: true}))
	s.becomes(t, id, "deleted", func(_ sandbox.Sandbox, err error) bool {
		return missing(err)
	})
}

func terminateTwice(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	s.end(t, id)
	err := s.P.Terminate(s.context(t), id, providers.TerminateOptions{})
	require.Error(t, err, "what has ended cannot be asked to end")
	assert.True(t, missing(err), "%v", err)
}

func terminateOne(t T, s *Subject) {
	first, second := s.start(t, sandbox.Spec{}), s.start(t, sandbox.Spec{})
	s.end(t, first)
	got, err := s.P.Get(s.context(t), second)
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateRunning, got.State, "another sandbox was hit")
}

func endedListed(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	s.end(t, id)
	for _, b := range s.list(t) {
		if b.ID == id {
			assert.True(t, over(b, nil), "listed as %s after its end", b.State)
		}
	}
}
