package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestTheMouseIsOnOrOff: another word is a mistake with its place.
func TestTheMouseIsOnOrOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.True(t, w.must().Mouse)
	w.user("mouse: off")
	assert.False(t, w.must().Mouse)
	w.user("mouse: on")
	c := w.must()
	assert.True(t, c.Mouse)
	assert.Equal(t, "on <- DIR/home/.config/sbx/config.yaml:1", w.origin(c, "mouse"))
}
