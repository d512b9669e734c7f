package identity

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const markKey = "IDENTITY_TEST_MARK"

// marked is a search for the processes of one test.
func marked(value string) func() ([]Stat, error) {
	return func() ([]Stat, error) { return Host().Marked(markKey, value) }
}

func TestEndOutrunsForks(t *testing.T) {
	t.Parallel()
	mark := "forks" + strconv.Itoa(os.Getpid())
	c := spawn(t, []string{markKey + "=" + mark}, "sh", "-c",
		`trap "" TERM INT HUP; i=0; while [ $i -lt 200 ]; do (setsid sleep 600 >/dev/null &); [ $i = 20 ] && echo; i=$((i+1)); done; cat`)
	c.line(t)
	met, err := Host().End(t.Context(), marked(mark))
	require.NoError(t, err)
	assert.GreaterOrEqual(t, met, 20)
	left, err := marked(mark)()
	require.NoError(t, err)
	assert.Empty(t, left)
	again, err := Host().End(t.Context(), marked(mark))
	require.NoError(t, err)
	assert.Zero(t, again)
}

func TestEndTakesHalfOfATree(t *testing.T) {
	t.Parallel()
	c := spawn(t, nil, "sh", "-c", "sleep 600 & sleep 600 & echo; read x")
	c.line(t)
	met, err := Host().End(t.Context(), func() ([]Stat, error) { return Host().Descendants(c.Process.Pid) })
	require.NoError(t, err)
	assert.GreaterOrEqual(t, met, 2)
	alive := statOf(t, c.Process.Pid)
	assert.False(t, alive.Dead(), "the root of the tree was not named")
	assert.NotEqual(t, byte('T'), alive.State)
}

func TestEndedContextKillsAllTheSame(t *testing.T) {
	t.Parallel()
	c := cat(t)
	found := statOf(t, c.Process.Pid)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	met, err := Host().End(ctx, func() ([]Stat, error) { return []Stat{found}, nil })
	if err != nil {
		require.ErrorIs(t, err, context.Canceled)
	}
	assert.Equal(t, 1, met)
	var exit *exec.ExitError
	require.ErrorAs(t, c.Wait(), &exit, "it is not left stopped")
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	assert.Equal(t, syscall.SIGKILL, status.Signal())
}

func TestEndLeavesOutTheCallerAndReportsTheSearch(t *testing.T) {
	t.Parallel()
	self := statOf(t, os.Getpid())
	met, err := Host().End(t.Context(), func() ([]Stat, error) { return []Stat{self}, nil })
	require.NoError(t, err)
	assert.Zero(t, met)
	broken := errors.New("no table")
	_, err = Host().End(t.Context(), func() ([]Stat, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
}

func TestEndSparesWhoTookTheNumber(t *testing.T) {
	t.Parallel()
	c := cat(t)
	stale := statOf(t, c.Process.Pid)
	stale.StartTicks-- // somebody else, who had this number before
	met, err := Host().End(t.Context(), func() ([]Stat, error) { return []Stat{stale}, nil })
	require.NoError(t, err, "a search that names who is gone comes to an end")
	assert.Equal(t, 1, met)
	s := statOf(t, c.Process.Pid)
	assert.False(t, s.Dead())
	assert.NotEqual(t, byte('T'), s.State)
}

// endParent tries, as another user, to end the process that started it.
func endParent() string {
	if os.Getuid() == 0 {
		return "fail: still root"
	}
	parent, err := Host().Stat(os.Getppid())
	if err != nil {
		return "skip: " + err.Error()
	}
	_, err = Host().End(context.Background(), func() ([]Stat, error) { return []Stat{parent}, nil })
	if !errors.Is(err, fs.ErrPermission) {
		return "fail: " + strconv.Quote(errors.Join(err, errors.New("no refusal")).Error())
	}
	return "ok"
}

func TestEndReportsWhatMayNotBeSignalled(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperKey+"=end-parent", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("the test binary cannot be run by another user: %v", err)
	}
	require.NoError(t, err)
	assert.Equal(t, "ok\n", string(out))
}
