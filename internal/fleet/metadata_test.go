package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
)

// TestLabelsMeanTheSameEverywhere: in a list, by id, by name, by its labels and just made.
func TestLabelsMeanTheSameEverywhere(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod"})
	labels := map[string]string{"task_id": "job-7", "kind": "coder", "owner": "somebody"}
	p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "box-0001", Name: "one", Labels: labels}})
	f := fleet.New([]fleet.Member{{Provider: p, Metadata: sandbox.Metadata{Task: []string{"task_id"}, AgentType: []string{"kind"}, Owner: []string{"owner"}}}}, fleet.Options{})
	holds := func(s sandbox.Sandbox, how string) {
		t.Helper()
		assert.Equal(t, []string{"job-7", "coder", "somebody"}, []string{s.TaskID, s.AgentType, s.Owner}, how)
	}
	l := f.Collect(t.Context(), providers.Query{})
	require.Len(t, l.Items, 1)
	holds(l.Items[0], "list")
	for _, word := range []string{"prod/box-0001", "box-0001", "one"} {
		found, err := f.Find(t.Context(), []string{word}, fleet.FindOptions{})
		require.NoError(t, err)
		holds(found[0], word)
	}
	got, err := f.Get(t.Context(), sandbox.Ref{Provider: "prod", ID: "box-0001"})
	require.NoError(t, err)
	holds(got, "get")
	labelled, err := f.Labelled(t.Context(), "prod", map[string]string{"kind": "coder"})
	require.NoError(t, err)
	require.Len(t, labelled, 1)
	holds(labelled[0], "labelled")
	made, err := f.Create(t.Context(), "prod", sandbox.Spec{Command: []string{"true"}, Labels: labels})
	require.NoError(t, err)
	holds(made, "create")
}
