package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHowManyMayRun at one profile: by all, or by its own word.
func TestHowManyMayRun(t *testing.T) {
	t.Parallel()
	most := func(w *world, name string) int {
		p, ok := w.must().Find(name)
		require.True(t, ok)
		return p.MaxSandboxes
	}
	w := newWorld(t)
	assert.Zero(t, most(w, "here"), "nobody has said")
	w.user("limits: {max_sandboxes: 50}\nproviders: {here: {type: here, max_sandboxes: 3}, prod: {type: cloud, token: x}}\n")
	assert.Equal(t, 3, most(w, "here"))
	assert.Equal(t, 50, most(w, "prod"))
}
