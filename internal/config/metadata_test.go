package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func (w *world) metadata(profile string) sandbox.Metadata {
	w.t.Helper()
	p, ok := w.must().Find(profile)
	require.True(w.t, ok)
	return p.Metadata
}

// TestWhichLabelsMeanWhat: for all profiles, and for one.
func TestWhichLabelsMeanWhat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "CLOUD_KEY=s3cret")
	assert.Equal(t, sandbox.DefaultMetadata(), w.metadata("cloud"), "a profile without a file")
	w.user("metadata: {task: [job, task_id], owner: team}\nproviders:\n  mine: {type: cloud, token: x, metadata: {task: run, agent_type: [Kind.v1]}}\n")
	assert.Equal(t, sandbox.Metadata{Task: []string{"job", "task_id"}, AgentType: []string{"agent_type"}, Owner: []string{"team"}}, w.metadata("cloud"))
	assert.Equal(t, sandbox.Metadata{Task: []string{"run"}, AgentType: []string{"Kind.v1"}, Owner: []string{"team"}}, w.metadata("mine"))
	c := w.must()
	assert.Equal(t, `["job","task_id"] <- DIR/home/.config/sbx/config.yaml:1`, w.origin(c, "metadata.task"))
	assert.Equal(t, `["agent_type"] <- default`, w.origin(c, "metadata.agent_type"))
	assert.Equal(t, `["run"] <- DIR/home/.config/sbx/config.yaml:3`, w.origin(c, "providers.mine.metadata.task"))
	assert.Equal(t, "no such key", w.origin(c, "providers.mine.metadata.owner"))
}
