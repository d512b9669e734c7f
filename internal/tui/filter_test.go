package tui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func typeAll(m *Model, text string) {
	for _, r := range text {
		press(m, string(r))
	}
}

// TestAConditionFilters as `ls --where` does: it is compiled as it is typed, and one that is wrong is shown
// with its place while the rows of the last one stay.
func TestAConditionFilters(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 80, 24)
	m.cells.Plain = true
	press(m, "/")
	typeAll(m, "where age_seconds > ")
	assert.Len(t, m.rows, 4, "before there is a condition all rows stay")
	typeAll(m, "2m")
	assert.Len(t, m.rows, 3)
	typeAll(m, " and stuc")
	assert.Len(t, m.rows, 3, "the last rows stay")
	assert.Contains(t, frameOf(m), `/where age_seconds > 2m and stuc_  column 22: no name "stuc"`)
	typeAll(m, "k")
	assert.Len(t, m.rows, 1)
	assert.Equal(t, 1, m.counts[tabAll])
	press(m, "enter", "esc")
	assert.Len(t, m.rows, 4)
	assert.NotContains(t, frameOf(m), "/where")
}

// TestAConditionThatNeedsALookGetsIt: a row of which it is unknown is counted, looked at and then decided.
func TestAConditionThatNeedsALookGetsIt(t *testing.T) {
	t.Parallel()
	s := newScene()
	m := board(t, s, 80, 24)
	m.cells.Plain = true
	m.setFilter("where cpu_percent > 90")
	assert.Empty(t, m.rows)
	assert.Contains(t, frameOf(m), "unknown for 4")
	cmd := m.lookDue(noon())
	require.NotNil(t, cmd)
	assert.Empty(t, s.looks)
	m.Update(cmd())
	assert.Len(t, s.looks[0], 4, "though none of them is on the screen")
	assert.Len(t, m.rows, 4)
	assert.NotContains(t, frameOf(m), "unknown for")
}

// TestTheFilterIsSeenAtEveryWidth: its line is its own.
func TestTheFilterIsSeenAtEveryWidth(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), leastWidth, leastHeight)
	press(m, "/", "b", "u")
	assert.Contains(t, strings.Join(m.Frame(), "\n"), "/bu_")
}
