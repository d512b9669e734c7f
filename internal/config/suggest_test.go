package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMeant(t *testing.T) {
	t.Parallel()
	assert.Equal(t, " (nothing is allowed here)", suggestAllowed("a", nil))
	assert.Equal(t, " (allowed: b, c)", suggestAllowed("xyz", []string{"c", "b", "c"}))
}

func TestJoinedKeepsOrderAndBounds(t *testing.T) {
	t.Parallel()
	require.NoError(t, joinMistakes(nil))
	plain := errors.New("first of all")
	err := joinMistakes([]error{
		mistakeAt("/b", position{Line: 2, Column: 1}, "b2"), mistakeAt("/b", position{Line: 1, Column: 7}, "b1"), mistakeAt("/b", position{Line: 1, Column: 2}, "b0"), plain,
	})
	assert.Equal(t, "first of all\n/b:1:2: b0\n/b:1:7: b1\n/b:2:1: b2", err.Error())
	many := make([]error, maxMistakes+5)
	for i := range many {
		many[i] = mistakeAt("/a", position{Line: i + 1, Column: 1}, "x")
	}
	lines := strings.Split(joinMistakes(many).Error(), "\n")
	assert.Len(t, lines, maxMistakes+1)
	assert.Equal(t, "and 5 more mistakes", lines[maxMistakes])
}
