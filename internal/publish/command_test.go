//go:build unix

package publish

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/testkit/tiertest"
)

func command(t *testing.T, line string) (Command, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return Command{Line: line, Task: "t1", Fence: 12, Bundle: "/b/work.bundle", Dir: t.TempDir(), Env: operator("/"), Stdout: &out, Stderr: &out}, &out
}

func TestCommandExits(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		code   int
		signal string
	}{
		"true":            {0, ""},
		"exit 9":          {9, ""},
		"no-such-program": {127, ""},
		"kill -KILL $$":   {137, "SIGKILL"},
		"kill -TERM $$":   {143, "SIGTERM"},
		"kill -USR1 $$":   {138, "signal 10"},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			c, _ := command(t, line)
			exit, err := c.Run(t.Context())
			require.NoError(t, err)
			require.NotNil(t, exit.Code)
			assert.Equal(t, want.code, *exit.Code)
			assert.Equal(t, want.signal, exit.Signal)
			assert.NotEmpty(t, exit.Raw)
		})
	}
}

func TestCommandsSurroundings(t *testing.T) {
	t.Parallel()
	c, out := command(t, `printf '%s %s %s %s\n' "$SBX_TASK" "$SBX_FENCE" "$SBX_BUNDLE" "$OWN"; pwd; cat`)
	c.Env = append(c.Env, "OWN=kept", "SBX_FENCE=old")
	c.Dir, _ = filepath.EvalSymlinks(c.Dir)
	_, err := c.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "t1 12 /b/work.bundle kept\n"+c.Dir+"\n", out.String())
}

// full fails every write, as on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestCommandWhoseOutputNobodyTakes(t *testing.T) {
	t.Parallel()
	c, _ := command(t, `i=0; while [ $i -lt 2000 ]; do printf '%0100d\n' $i || exit 9; i=$((i+1)); done; touch published`)
	for _, errs := range []io.Writer{nil, full{}, &bytes.Buffer{}} {
		c.Stdout, c.Stderr, c.Dir = full{}, errs, t.TempDir()
		exit, err := c.Run(t.Context())
		require.NoError(t, err)
		require.NotNil(t, exit.Code)
		assert.Equal(t, 0, *exit.Code, "%+v", exit)
		assert.True(t, exists(c, "published"))
	}
}

func TestCommandWithoutWriters(t *testing.T) {
	t.Parallel()
	c, _ := command(t, "echo out; echo err >&2; touch published")
	c.Stdout, c.Stderr = nil, nil
	exit, err := c.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 0, *exit.Code)
	assert.True(t, exists(c, "published"))
}

func TestCommandThatCannotStart(t *testing.T) {
	t.Parallel()
	c, _ := command(t, "true")
	c.Dir = filepath.Join(c.Dir, "missing")
	_, err := c.Run(t.Context())
	assert.Equal(t, fault.KindLauncher, fault.KindOf(err), "%v", err)
}

// canceled runs a command, cancels it when its line has made the file "up", and returns its error.
func canceled(t *testing.T, c Command) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- second(c.Run(ctx)) }()
	require.Eventually(t, func() bool { return exists(c, "up") }, tiertest.Limit(t), 2*time.Millisecond)
	cancel()
	return <-over
}

func exists(c Command, name string) bool {
	_, err := os.Stat(filepath.Join(c.Dir, name))
	return err == nil
}

func groupOf(t *testing.T, c Command) int { t.Helper(); return readPid(t, filepath.Join(c.Dir, "up")) }

func TestCommandIsTermed(t *testing.T) {
	t.Parallel()
	c, _ := command(t, `trap 'touch termed; exit 0' TERM; echo $$ >up.new; mv up.new up; while :; do sleep 0.02; done`)
	err := canceled(t, c)
	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, exists(c, "termed"), "it had its chance to tidy up")
	assert.False(t, groupLives(groupOf(t, c)))
}

// The shell line ends at once, its child needs its grace.
func TestCommandsChildMayTidyUp(t *testing.T) {
	t.Parallel()
	c, _ := command(t, `(trap 'sleep 0.3; touch tidied; exit' TERM; touch set; while :; do sleep 0.02; done) >/dev/null 2>&1 &
while [ ! -e set ]; do sleep 0.02; done; echo $$ >up.new; mv up.new up; wait`)
	err := canceled(t, c)
	require.ErrorIs(t, err, context.Canceled)
	assert.True(t, exists(c, "tidied"))
}

func TestCommandAndItsChildrenAreKilled(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"the line itself does not listen": `trap '' TERM; echo $$ >up.new; mv up.new up; while :; do sleep 0.02; done`,
		"a child does not listen":         `(trap '' TERM; while :; do sleep 0.02; done) & echo $$ >up.new; mv up.new up; wait`,
		"a child is frozen":               `(trap '' TERM; sh -c 'kill -STOP $PPID'; sleep 60) & echo $$ >up.new; mv up.new up; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := command(t, line)
			c.Grace = 300 * time.Millisecond
			err := canceled(t, c)
			require.ErrorIs(t, err, context.Canceled)
			group := groupOf(t, c)
			require.Eventually(t, func() bool { return !groupLives(group) }, tiertest.Limit(t), 5*time.Millisecond)
		})
	}
}

// A child left in the background would act after sbx has reported the end of the publish.
func TestCommandsBackgroundChild(t *testing.T) {
	t.Parallel()
	c, out := command(t, `echo $$ >up; (sleep 60; touch late) & echo said`)
	exit, err := c.Run(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 0, *exit.Code)
	assert.Equal(t, "said\n", out.String())
	group := groupOf(t, c)
	require.Eventually(t, func() bool { return !groupLives(group) }, tiertest.Limit(t), 5*time.Millisecond)
}

// A daemon in a session of its own that holds the pipe does not block it.
func TestCommandsDaemonThatHoldsThePipe(t *testing.T) {
	t.Parallel()
	c, _ := command(t, `setsid sh -c 'echo $$ >up.new; mv up.new up; sleep 30' & while [ ! -e up ]; do sleep 0.02; done`)
	began := time.Now()
	_, err := c.Run(t.Context())
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 10*time.Second)
	assert.True(t, groupLives(groupOf(t, c)), "it is not the command's any more")
	require.NoError(t, syscall.Kill(-groupOf(t, c), syscall.SIGKILL))
}

func TestCommandAfterItsContext(t *testing.T) {
	t.Parallel()
	c, _ := command(t, "touch ran")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fault.New(fault.KindRefused, "the deadline has passed"))
	_, err := c.Run(ctx)
	require.ErrorContains(t, err, "the deadline has passed")
	assert.False(t, exists(c, "ran"))
}
