package docker_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/dockertest"
)

// TestLabelsOfAnImageAreNotTheContainers: `docker commit` of a sandbox keeps its labels in the image. A container of
// it is not ours, and is none of the task; what protects it counts, and what sbx creates of it is ours.
func TestLabelsOfAnImageAreNotTheContainers(t *testing.T) {
	t.Parallel()
	f := dockertest.New(t, dockertest.Options{Virtual: true})
	ours := map[string]string{
		sandbox.LabelOwner: "sbx", sandbox.LabelRun: "main", sandbox.LabelNonce: "n1", sandbox.LabelTask: "t-1",
		sandbox.LabelExpires: time.Now().Add(time.Hour).UTC().Format(time.RFC3339), sandbox.LabelKeep: "true", "team": "agents",
	}
	first := f.Add(dockertest.Seed{Name: "ours", Labels: ours})
	f.Commit(first, "saved:1")
	theirs := f.Add(dockertest.Seed{Name: "theirs", Image: "saved:1"})
	labelled := f.Add(dockertest.Seed{Name: "labelled", Image: "saved:1", Labels: map[string]string{sandbox.LabelOwner: "me"}})
	again := f.Add(dockertest.Seed{Name: "again", Image: "saved:1", Labels: map[string]string{
		sandbox.LabelOwner: "sbx", sandbox.LabelRun: "main", sandbox.LabelNonce: "n2", sandbox.LabelExpires: ours[sandbox.LabelExpires],
	}})
	f.Commit(first, "lost:1")
	lost := f.Add(dockertest.Seed{Name: "lost", Image: "lost:1"})
	f.Forget("lost:1")

	kept := map[string]string{sandbox.LabelKeep: "true", "team": "agents"}
	made := map[string]string{sandbox.LabelOwner: "sbx", sandbox.LabelRun: "main", sandbox.LabelNonce: "n2", sandbox.LabelExpires: ours[sandbox.LabelExpires]}
	maps.Copy(made, kept)
	mine := map[string]string{sandbox.LabelOwner: "me"}
	maps.Copy(mine, kept)
	unproved := maps.Clone(ours)
	delete(unproved, sandbox.LabelOwner)
	delete(unproved, sandbox.LabelNonce)
	c := dialed(t, f)
	defer c.Close()
	listed := map[string]sandbox.Sandbox{}
	for s, err := range c.List(t.Context(), providers.Query{All: true}) {
		require.NoError(t, err)
		listed[s.ID] = s
	}
	for id, want := range map[string]map[string]string{first: ours, theirs: kept, labelled: mine, again: made, lost: unproved} {
		got, err := c.Get(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, want, got.Labels, got.Name)
		assert.Equal(t, want, listed[id].Labels, got.Name)
		assert.Equal(t, want[sandbox.LabelTask], listed[id].TaskID)
		assert.Equal(t, want[sandbox.LabelExpires] == "", got.ExpiresAt.IsZero(), got.Name)
	}

	var found []string
	for s, err := range c.List(t.Context(), providers.Query{Labels: map[string]string{sandbox.LabelTask: "t-1"}}) {
		require.NoError(t, err)
		found = append(found, s.ID)
	}
	assert.ElementsMatch(t, []string{first, lost}, found, "a search by a label of ours finds no other's")
}
