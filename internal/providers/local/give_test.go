//go:build unix

package local

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

type orderPipe struct {
	bytes.Buffer

	closing error
}

func (p *orderPipe) Close() error { return p.closing }

// A sandbox that ends at once ends its supervisor before the order's pipe is
// closed: it was started all the same, and a second start would be one too many.
func TestGiveToASupervisorThatIsDoneAlready(t *testing.T) {
	t.Parallel()
	pipe := &orderPipe{closing: &os.PathError{Op: "close", Path: "|1", Err: os.ErrClosed}}
	require.NoError(t, sendOrder(pipe, wire.Order{Root: "/state/local"}))
	var got wire.Order
	require.NoError(t, wire.NewReader(pipe).Next(&got))
	assert.Equal(t, "/state/local", got.Root)

	broken := errors.New("broken")
	assert.ErrorIs(t, sendOrder(&orderPipe{closing: broken}, wire.Order{}), broken)
}

// A sandbox whose client is killed before the supervisor's answer is unknown to every user, and
// must not run until its time is over.
func TestASandboxThatNobodyHeardOfEnds(t *testing.T) {
	t.Parallel()
	kind := Type()
	p := providers.Profile{Name: "local", Settings: map[string]string{}}
	for _, o := range kind.Options {
		p.Settings[o.Name] = o.Default
	}
	opened, err := kind.Open(t.Context(), p, providers.Deps{Now: time.Now, StateDir: t.TempDir(), Notice: func(string) {}, Lookup: os.LookupEnv})
	require.NoError(t, err)
	c, ok := opened.(*Client)
	require.True(t, ok)
	spec := sandbox.Spec{Command: []string{"sleep", "600"}, TTL: 20 * time.Second}
	lock, err := c.store.Prepare("abcdefghij")
	require.NoError(t, err)
	answer, say, err := os.Pipe()
	require.NoError(t, err)
	order := wire.Order{Root: c.store.Root, Record: c.newRecord("abcdefghij", spec), Env: c.buildEnvironment("abcdefghij", spec)}
	cmd, closeLog, err := c.supervisorCommand(order, say, lock)
	require.NoError(t, err)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, errors.Join(answer.Close(), say.Close(), lock.Close(), closeLog())) // the client is dead
	require.NoError(t, sendOrder(stdin, order))
	require.NoError(t, cmd.Wait())

	last, err := c.Get(t.Context(), "abcdefghij")
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateTerminated, last.State)
	events, err := c.Events(t.Context(), "abcdefghij")
	require.NoError(t, err)
	assert.Contains(t, events[len(events)-1].Detail, "its client died")
}
