package providertest

import (
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

func listChecks() []Check {
	return []Check{
		{"list_contains_what_was_created", "", listContains},
		{"list_reads_every_page_once", "", listEveryPage},
		{"list_can_be_read_again", "", listAgain},
		{"list_stops_with_its_consumer", "", listStops},
		{"list_narrows_without_losing", "", listNarrows},
		{"ids_are_references", "", idsAreRefs},
	}
}

func listContains(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{Name: "listed"})
	i := slices.IndexFunc(s.list(t), func(b sandbox.Sandbox) bool { return b.ID == id })
	require.GreaterOrEqual(t, i, 0, "%s is not listed", id)
	got := s.list(t)[i]
	assert.Equal(t, s.P.Name(), got.Provider, "a listed sandbox names its profile")
	assert.Equal(t, s.P.Type(), got.ProviderType, "a listed sandbox names its provider's type")
	assert.Equal(t, sandbox.StateRunning, got.State)
	assert.NotEmpty(t, got.RawState, "the provider's own word is kept")
}

func listEveryPage(t T, s *Subject) {
	want := make([]string, 0, s.c.Many)
	for range s.c.Many {
		want = append(want, s.start(t, sandbox.Spec{}))
	}
	seen := map[string]int{}
	for _, b := range s.list(t) {
		seen[b.ID]++
	}
	for _, id := range want {
		assert.Equal(t, 1, seen[id], "%s of %d created is listed %d times", id, len(want), seen[id])
	}
}

func listAgain(t T, s *Subject) {
	s.start(t, sandbox.Spec{})
	seq := s.P.List(s.context(t), providers.Query{All: true})
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

func listStops(t T, s *Subject) {
	for range s.c.Many {
		s.start(t, sandbox.Spec{})
	}
	got := 0
	returned := s.returns(func() {
		for _, err := range s.P.List(s.context(t), providers.Query{}) {
			if err == nil {
				got++
			}
			break
		}
	})
	require.True(t, returned, "list goes on after its consumer has stopped")
	assert.Equal(t, 1, got)
}

func listNarrows(t T, s *Subject) {
	id := s.start(t, sandbox.Spec{Labels: map[string]string{"sbx-check": "narrow"}})
	found := false
	for b, err := range s.P.List(s.context(t), providers.Query{States: []sandbox.State{sandbox.StateRunning}}) {
		require.NoError(t, err)
		found = found || b.ID == id
	}
	assert.True(t, found, "a query may return more than it asks for, never less")
}

func idsAreRefs(t T, s *Subject) {
	s.start(t, sandbox.Spec{})
	for _, b := range s.list(t) {
		ref, err := sandbox.ParseRef(b.Ref().String())
		require.NoError(t, err)
		assert.Equal(t, b.Ref(), ref)
		bare, err := sandbox.ParseRef(b.ID)
		require.NoError(t, err)
		assert.Equal(t, b.ID, bare.ID)
	}
}
