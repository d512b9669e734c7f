package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestKeysAreReadByTheirActions: the dashboard judges them.
func TestKeysAreReadByTheirActions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Empty(t, w.must().Keys)
	w.user("keys: {pause: space, copy_ref: Y}")
	c := w.must()
	assert.Equal(t, map[string]string{"pause": "space", "copy_ref": "Y"}, c.Keys)
	assert.Equal(t, "space <- DIR/home/.config/sbx/config.yaml:1", w.origin(c, "keys.pause"))
}
