package tui

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
)

// TestEveryBindingHasAnAction of its own, and keys that there are.
func TestEveryBindingHasAnAction(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, b := range bindings() {
		assert.NotEmpty(t, b.action)
		assert.False(t, seen[b.action], b.action)
		seen[b.action] = true
		for _, key := range b.keys {
			assert.True(t, knownKey(key), key)
		}
	}
	require.NoError(t, CheckKeys(nil), "no key is bound twice")
}

// TestKeysAreRebound by the names of their actions; the help and the last line have the new ones.
func TestKeysAreRebound(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 120, 40)
	m.cells.Plain = true
	var err error
	m.bound, err = rebound(bindings(), map[string]string{"logs": "f5", "quit": "f9", "pause": "l"})
	require.NoError(t, err)
	assert.Contains(t, m.keyHelp(), "f5 logs")
	assert.Contains(t, m.keyHelp(), "f9")
	press(m, "l")
	assert.True(t, m.paused)
	press(m, "p", "q")
	assert.True(t, m.paused)
	_, quit := m.Update(tea.KeyPressMsg{Code: tea.KeyF9})
	assert.IsType(t, tea.QuitMsg{}, quit())
	_, cmd := m.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	assert.IsType(t, tea.QuitMsg{}, cmd())
	m.Update(tea.KeyPressMsg{Code: tea.KeyF5})
	assert.Contains(t, frameOf(m), "l pause")
	press(m, "?")
	assert.Contains(t, frameOf(m), "  f5          its newest output")
}

// TestKeysThatCannotBeBound are refused with the names of both sides.
func TestKeysThatCannotBeBound(t *testing.T) {
	t.Parallel()
	for message, keys := range map[string]map[string]string{
		`keys: "l" is the key of logs and of pause`:             {"pause": "l", "logs": "l"},
		`keys: "z" is the key of up and of down`:                {"up": "z", "down": "z"},
		`keys: no action "log", for which "z" is to be the key`: {"log": "z"},
		`keys: pause: no key "hyper+x"`:                         {"pause": "hyper+x"},
		`keys: pause: no key ""`:                                {"pause": ""},
		`keys: pause cannot be ctrl+c, which always quits`:      {"pause": "ctrl+c"},
	} {
		err := CheckKeys(keys)
		require.EqualError(t, err, message)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err))
	}
}

// TestAConfiguredKeyWins over the action that has it by default, which keeps its other keys.
func TestAConfiguredKeyWins(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 200, 40)
	m.cells.Plain = true
	var err error
	m.bound, err = rebound(bindings(), map[string]string{"pause": "K", "sort": "j"})
	require.NoError(t, err)
	press(m, "K")
	assert.True(t, m.paused)
	press(m, "j")
	assert.Equal(t, byAge, m.order)
	assert.NotContains(t, m.keyHelp(), "K keep")
	m.Update(tea.KeyPressMsg{Code: tea.KeyDown})
	assert.Equal(t, 1, m.at, "down has its other key still")
}
