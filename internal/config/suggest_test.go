package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShownStopsWhereASecretMayBegin(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"token": "token", "token:s3cret": "token", "token s3cret": "token", "token=s3cret": "token", "": "", "\x1b[31m": "",
		strings.Repeat("a", 50): strings.Repeat("a", 40),
	} {
		assert.Equal(t, want, shown(key))
	}
}

func TestMeant(t *testing.T) {
	t.Parallel()
	assert.Equal(t, " (nothing is allowed here)", meant("a", nil))
	assert.Equal(t, " (allowed: b, c)", meant("xyz", []string{"c", "b", "c"}))
}

func TestJoinedKeepsOrderAndBounds(t *testing.T) {
	t.Parallel()
	require.NoError(t, joined(nil))
	plain := errors.New("first of all")
	err := joined([]error{
		mistake("/b", position{2, 1}, "b2"), mistake("/a", position{9, 9}, "a9"), mistake("/b", position{1, 7}, "b1"), mistake("/b", position{1, 2}, "b0"), plain,
	})
	assert.Equal(t, "first of all\n/b:1:2: b0\n/b:1:7: b1\n/b:2:1: b2\n/a:9:9: a9", err.Error())
	many := make([]error, maxMistakes+5)
	for i := range many {
		many[i] = mistake("/a", position{i + 1, 1}, "x")
	}
	lines := strings.Split(joined(many).Error(), "\n")
	assert.Len(t, lines, maxMistakes+1)
	assert.Equal(t, "and 5 more mistakes", lines[maxMistakes])
}
