package providertest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func createChecks() []Check {
	return []Check{
		{"create_applies_the_spec", "create", createApplies},
		{"create_gives_each_an_id", "create", createIDs},
		{"create_hides_env_values", "create", createHides},
	}
}

// slack is how far an expiry may lie from now plus the TTL that was asked for:
// providers count from different moments and in whole seconds.
const slack = 5 * time.Second

func createApplies(t T, s *Subject) {
	spec := sandbox.Spec{
		Name: "applied", TaskID: "t-7f3a", AgentType: "conformance",
		Labels: map[string]string{"sbx-check": "applied"}, TTL: 10 * time.Minute,
	}
	id := s.start(t, spec)
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	assert.Equal(t, spec.Name, got.Name)
	assert.Equal(t, spec.TaskID, got.TaskID)
	assert.Equal(t, spec.AgentType, got.AgentType)
	assert.Equal(t, "applied", got.Labels["sbx-check"])
	assert.WithinDuration(t, time.Now().Add(spec.TTL), got.ExpiresAt, slack, "the expiry follows the TTL")
	_, source := got.Age(time.Now().Add(slack))
	assert.NotEqual(t, sandbox.AgeUnknown, source, "a created sandbox has an age")
}

func createIDs(t T, s *Subject) {
	seen := map[string]bool{}
	for range s.c.Many {
		id := s.start(t, sandbox.Spec{Name: "same"})
		assert.False(t, seen[id], "%s was given twice", id)
		seen[id] = true
	}
}

func createHides(t T, s *Subject) {
	const value = "hidden-7f3ac2"
	id := s.start(t, sandbox.Spec{Env: []string{"SBX_SECRET=" + value}})
	if _, ok := providers.As[providers.LogReader](s.P); ok {
		got, err := logs(s.context(t), ability[providers.LogReader](t, s), id, providers.LogQuery{})
		require.NoError(t, err)
		assert.NotContains(t, fmt.Sprintf("%+v", got), value, "logs show an environment value")
	}
	got, err := s.P.Get(s.context(t), id)
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprintf("%+v", got), value, "get shows an environment value")
	assert.NotContains(t, fmt.Sprintf("%+v", s.list(t)), value, "list shows an environment value")
	if r, ok := providers.As[providers.EventReader](s.P); ok {
		events, err := r.Events(s.context(t), id)
		require.NoError(t, err)
		assert.NotContains(t, fmt.Sprintf("%+v", events), value, "events show an environment value")
	}
}
