package providertest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func createChecks() []Check {
	return []Check{
		{"create_applies_the_spec", "create", createApplies},
		{"create_gives_each_an_id", "create", createIDs},
		{"create_hides_env_values", "create", createHides},
		{"create_keeps_the_callers_marks", "create", createMarks},
		{"create_of_missing_program", "create", createMissing},
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

// createMarks: what launched a sandbox finds it again by what it gave it, also where
// the answer to the creation was lost.
func createMarks(t T, s *Subject) {
	marks := map[string]string{sandbox.LabelTask: "t-7f3a", sandbox.LabelNonce: "n-7f3ac2-1"}
	s.start(t, sandbox.Spec{})
	id := s.start(t, sandbox.Spec{TaskID: marks[sandbox.LabelTask], Labels: marks})
	for key, value := range marks {
		found := 0
		for b, err := range s.P.List(s.context(t), providers.Query{Labels: map[string]string{key: value}}) {
			require.NoError(t, err)
			if b.ID == id {
				found++
				assert.Equal(t, value, b.Labels[key])
			} else {
				assert.NotEqual(t, value, b.Labels[key], "another bears its mark")
			}
		}
		assert.Equal(t, 1, found, "it is not found by %s=%s", key, value)
	}
}

// createMissing: a program that is not there is told at once, and no sandbox stays
// that nobody needs and somebody pays.
func createMissing(t T, s *Subject) {
	s.start(t, sandbox.Spec{})
	before := len(s.list(t))
	launcher := ability[providers.Launcher](t, s)
	_, err := launcher.Create(s.context(t), sandbox.Spec{Command: []string{"no-such-program-7f3a"}})
	assert.Equal(t, fault.KindCommandNotFound, fault.KindOf(err), "%v", err)
	after := 0
	for _, b := range s.list(t) {
		if !b.State.Ended() && b.State != sandbox.StateTerminating {
			after++
		}
	}
	assert.LessOrEqual(t, after, before, "it leaves a sandbox that idles")
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
