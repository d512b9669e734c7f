package tui

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// TestAShellIsOpenedWhereTheSandboxRuns, and its error is the notice.
func TestAShellIsOpenedWhereTheSandboxRuns(t *testing.T) {
	t.Parallel()
	m := board(t, newScene(), 80, 24)
	assert.Nil(t, press(m, "e")[0], "there is no terminal")
	assert.Contains(t, m.notice, "no shell")
	m.shell = func(context.Context, sandbox.Ref) error { return nil }
	assert.NotNil(t, press(m, "e")[0])
	assert.Empty(t, m.notice)
	m.Update(shellMsg{m.rows[0].ref(), errors.New("sbx: error: sh: not found")})
	assert.Equal(t, "shell in "+m.rows[0].ref()+": error: sh: not found", m.notice)
	m.rows[0].State = sandbox.StatePaused
	assert.Nil(t, press(m, "e")[0])
	assert.Equal(t, "no shell: "+m.rows[0].ref()+" is paused", m.notice)
}
