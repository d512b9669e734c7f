package providertest

import (
	"slices"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

const unknownID = "no-such-sandbox-7f3a"

func checkGetAgreesWithList(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{Name: "agreed"})
	got, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	for _, listed := range s.readList(t) {
		if listed.ID == id {
			assert.Equal(t, stableFields(listed), stableFields(got), "get and list describe the same sandbox")
			return
		}
	}
	assert.Fail(t, "not listed", "%s is not in the listing", id)
}

func checkGetID(t T, s *Subject) {
	for _, id := range []string{s.startSandbox(t, sandbox.Spec{}), s.startSandbox(t, sandbox.Spec{})} {
		got, err := s.P.Get(s.callContext(t), id)
		require.NoError(t, err)
		assert.Equal(t, id, got.ID, "the answer is about another sandbox")
	}
}

// stableFields are the fields that do not change while a sandbox runs.
func stableFields(b sandbox.Sandbox) sandbox.Sandbox {
	return sandbox.Sandbox{
		Provider: b.Provider, ProviderType: b.ProviderType, ID: b.ID, Name: b.Name, State: b.State,
		CreatedAt: b.CreatedAt, StartedAt: b.StartedAt, ExpiresAt: b.ExpiresAt,
		TaskID: b.TaskID, Template: b.Template, AgentType: b.AgentType,
	}
}

func checkTimes(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{})
	got, err := s.P.Get(s.callContext(t), id)
	require.NoError(t, err)
	late := time.Now().Add(time.Minute) // clocks of two machines may differ a little
	for name, at := range map[string]time.Time{"created": got.CreatedAt, "started": got.StartedAt, "activity": got.LastActivityAt} {
		assert.False(t, at.After(late), "%s lies in the future: %s", name, at)
	}
	if !got.CreatedAt.IsZero() && !got.StartedAt.IsZero() {
		assert.False(t, got.StartedAt.Before(got.CreatedAt), "started before it was created")
	}
}

func checkListContains(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{Name: "listed"})
	i := slices.IndexFunc(s.readList(t), func(b sandbox.Sandbox) bool { return b.ID == id })
	require.GreaterOrEqual(t, i, 0, "%s is not listed", id)
	got := s.readList(t)[i]
	assert.Equal(t, s.P.Name(), got.Provider, "a listed sandbox names its profile")
	assert.Equal(t, s.P.Type(), got.ProviderType, "a listed sandbox names its provider's type")
	assert.Equal(t, sandbox.StateRunning, got.State)
	assert.NotEmpty(t, got.RawState, "the provider's own word is kept")
}

func checkListPages(t T, s *Subject) {
	want := make([]string, 0, s.c.Many)
	for range s.c.Many {
		want = append(want, s.startSandbox(t, sandbox.Spec{}))
	}
	seen := map[string]int{}
	for _, b := range s.readList(t) {
		seen[b.ID]++
	}
	for _, id := range want {
		assert.Equal(t, 1, seen[id], "%s of %d created is listed %d times", id, len(want), seen[id])
	}
}

func checkListTwice(t T, s *Subject) {
	s.startSandbox(t, sandbox.Spec{})
	seq := s.P.List(s.callContext(t), providers.Query{All: true})
	count := func() (n int) {
		for _, err := range seq {
			require.NoError(t, err)
			n++
		}
		return n
	}
	first := count()
	assert.Equal(t, first, count(), "one sequence, read twice, tells the same")
}

func checkListStops(t T, s *Subject) {
	for range s.c.Many {
		s.startSandbox(t, sandbox.Spec{})
	}
	got := 0
	returned := s.returnsInTime(func() {
		for _, err := range s.P.List(s.callContext(t), providers.Query{}) {
			if err == nil {
				got++
			}
			break
		}
	})
	require.True(t, returned, "list goes on after its consumer has stopped")
	assert.Equal(t, 1, got)
}

func checkListQuery(t T, s *Subject) {
	id := s.startSandbox(t, sandbox.Spec{Labels: map[string]string{"sbx-check": "narrow"}})
	found := false
	for b, err := range s.P.List(s.callContext(t), providers.Query{States: []sandbox.State{sandbox.StateRunning}}) {
		require.NoError(t, err)
		found = found || b.ID == id
	}
	assert.True(t, found, "a query may return more than it asks for, never less")
}

func checkIDs(t T, s *Subject) {
	s.startSandbox(t, sandbox.Spec{})
	for _, b := range s.readList(t) {
		ref, err := sandbox.ParseRef(b.Ref().String())
		require.NoError(t, err)
		assert.Equal(t, b.Ref(), ref)
		bare, err := sandbox.ParseRef(b.ID)
		require.NoError(t, err)
		assert.Equal(t, b.ID, bare.ID)
	}
}

// checkUnknown checks that a call for an unknown id is fault.KindNotFound.
func checkUnknown(call string) func(t T, s *Subject) {
	return func(t T, s *Subject) {
		err := s.allCalls(unknownID)[call](s.callContext(t))
		require.Error(t, err, "%s of an unknown id is no success", call)
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err), "gone needs proof that it existed: %v", err)
	}
}
