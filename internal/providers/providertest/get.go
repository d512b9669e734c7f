package providertest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// unknownID is well-formed and belongs to nobody.
const unknownID = "no-such-sandbox-7f3a"

func getChecks() []Check {
	return []Check{
		{"get_agrees_with_list", "", getAgrees},
		{"get_answers_about_the_id_that_was_asked", "", getExact},
		{"get_of_unknown_is_not_found", "", getUnknown},
		{"terminate_of_unknown_is_not_found", "", terminateUnknown},
		{"times_are_not_in_the_future", "", timesPast},
	}
}

func getAgrees(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{Name: "agreed"})
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	for _, listed := range s.list(t) {
		if listed.ID == id {
			assert.Equal(t, identity(listed), identity(got), "get and list describe the same sandbox")
			return
		}
	}
	assert.Fail(t, "not listed", "%s is not in the listing", id)
}

func getExact(t T, s *Subject) {
	for _, id := range []string{s.start(t, sandbox.Spec{}), s.start(t, sandbox.Spec{})} {
		got, err := s.P.Get(s.context(t), id)
		require.NoError(t, err)
		assert.Equal(t, id, got.ID, "the answer is about another sandbox")
	}
}

// identity is what does not change while a sandbox runs.
func identity(b sandbox.Sandbox) sandbox.Sandbox {
	return sandbox.Sandbox{
		Provider: b.Provider, ProviderType: b.ProviderType, ID: b.ID, Name: b.Name, State: b.State,
		CreatedAt: b.CreatedAt, StartedAt: b.StartedAt, ExpiresAt: b.ExpiresAt,
		TaskID: b.TaskID, Template: b.Template, AgentType: b.AgentType,
	}
}

func getUnknown(t T, s *Subject) {
	_, err := s.P.Get(s.context(t), unknownID)
	require.Error(t, err)
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "gone needs proof that it existed: %v", err)
}

func terminateUnknown(t T, s *Subject) {
	err := s.P.Terminate(s.context(t), unknownID, providers.TerminateOptions{})
	require.Error(t, err, "ending what never was is no success")
	assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "gone needs proof that it existed: %v", err)
}

func timesPast(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{})
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	late := time.Now().Add(time.Minute) // clocks of two machines may differ a little
	for name, at := range map[string]time.Time{"created": got.CreatedAt, "started": got.StartedAt, "activity": got.LastActivityAt} {
		assert.False(t, at.After(late), "%s lies in the future: %s", name, at)
	}
	if !got.CreatedAt.IsZero() && !got.StartedAt.IsZero() {
		assert.False(t, got.StartedAt.Before(got.CreatedAt), "started before it was created")
	}
}
