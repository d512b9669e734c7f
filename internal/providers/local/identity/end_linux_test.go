package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

const markKey = "IDENTITY_TEST_MARK"

// marked is a search for the processes of one test.
func marked(value string) func() ([]Stat, error) {
	return func() ([]Stat, error) { return Host().Marked(markKey, value) }
}

func TestEndOutrunsForks(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
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
	if !inNamespace(t) {
		return
	}
	c := spawn(t, nil, "sh", "-c", "sleep 600 & sleep 600 & echo; read x")
	c.line(t)
	met, err := Host().End(t.Context(), func() ([]Stat, error) { return Host().Descendants(c.Process.Pid) })
	require.NoError(t, err)
	assert.GreaterOrEqual(t, met, 2)
	again, err := Host().End(t.Context(), func() ([]Stat, error) { return Host().Descendants(c.Process.Pid) })
	require.NoError(t, err)
	assert.Zero(t, again, "zombies are not met")
	alive := statOf(t, c.Process.Pid)
	assert.False(t, alive.Dead(), "the root of the tree was not named")
	assert.NotEqual(t, byte('T'), alive.State)
}

func TestEndStopsBeforeItKills(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	c := cat(t)
	found := statOf(t, c.Process.Pid)
	var states []byte
	_, err := Host().End(t.Context(), func() ([]Stat, error) {
		now := statOf(t, found.PID)
		if len(states) == 1 {
			assert.Eventually(t, func() bool { now = statOf(t, found.PID); return now.State == 'T' }, tiertest.Limit(t), pollEvery)
		}
		states = append(states, now.State)
		return []Stat{now}, nil
	})
	require.NoError(t, err)
	require.Len(t, states, 3)
	assert.Equal(t, "TZ", string(states[1:]))
}

func TestEndedContextKillsAllTheSame(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
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
	if !inNamespace(t) {
		return
	}
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
	if !inNamespace(t) {
		return
	}
	c := cat(t)
	stale := statOf(t, c.Process.Pid)
	stale.StartTicks-- // another process, which had this PID before
	met, err := Host().End(t.Context(), func() ([]Stat, error) { return []Stat{stale}, nil })
	require.NoError(t, err, "a search that names who is gone comes to an end")
	assert.Equal(t, 1, met)
	s := statOf(t, c.Process.Pid)
	assert.False(t, s.Dead())
	assert.NotEqual(t, byte('T'), s.State)
}

// targetKey names the process that the part below may not signal.
const targetKey = "IDENTITY_TEST_TARGET"

// endOther tries, as another user, to end one process of the test.
func endOther() string {
	pid, err := strconv.Atoi(os.Getenv(targetKey))
	if err != nil || os.Getuid() == 0 {
		return "fail: no target, or still root"
	}
	target, err := Host().Stat(pid)
	if err != nil {
		return "skip: " + err.Error()
	}
	met, err := Host().End(context.Background(), func() ([]Stat, error) { return []Stat{target}, nil })
	if met != 1 || !errors.Is(err, fs.ErrPermission) {
		return fmt.Sprint("fail: ", met, err)
	}
	return "ok"
}

func TestEndReportsWhatMayNotBeSignalled(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	c := cat(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), helperKey+"=end-other", targetKey+"="+strconv.Itoa(c.Process.Pid), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.Output()
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("the test binary cannot be run by another user: %v", err)
	}
	require.NoError(t, err)
	assert.Equal(t, "ok\n", string(out))
}

// TestEndRefusesASearchThatIsTooWide checks only the refusal: no process is signalled.
func TestEndRefusesASearchThatIsTooWide(t *testing.T) {
	t.Parallel()
	self, parent := statOf(t, os.Getpid()), statOf(t, os.Getppid())
	stranger := Stat{PID: 1 << 22, State: 'S'}
	for name, tc := range map[string]struct {
		found []Stat
		want  error
	}{
		"everybody":       {[]Stat{stranger, self, parent}, ErrTooWide},
		"init":            {[]Stat{stranger, {PID: 1, State: 'S'}}, ErrTooWide},
		"the parent":      {[]Stat{parent}, ErrTooWide},
		"its parent":      {[]Stat{{PID: max(parent.PPID, 1), State: 'S'}}, ErrTooWide},
		"nobody related":  {[]Stat{stranger}, nil},
		"the caller only": {[]Stat{self}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			living, err := Host().livingOthers(func() ([]Stat, error) { return tc.found, nil })
			require.ErrorIs(t, err, tc.want)
			if tc.want != nil {
				assert.Empty(t, living)
			}
		})
	}
}

func TestAncestors(t *testing.T) {
	t.Parallel()
	p := tree(t, map[string]string{
		"1/stat": line(1, "init", "S", 0), "5/stat": line(5, "sh", "S", 1), "7/stat": line(7, "sbx", "S", 5),
		"8/stat": line(8, "a", "S", 9), "9/stat": line(9, "b", "S", 8), // a ring
		"10/stat": line(10, "c", "S", 99), // whose parent has ended
		"11/stat": "11 (torn",
	})
	for pid, want := range map[int]map[int]bool{
		7:  {1: true, 5: true},
		1:  {1: true},
		8:  {1: true, 9: true, 8: true},
		10: {1: true, 99: true},
		99: {1: true},
	} {
		got, err := p.ancestorSet(pid)
		require.NoError(t, err)
		assert.Equal(t, want, got, "of %d", pid)
	}
	_, err := p.ancestorSet(11)
	require.ErrorIs(t, err, errStat)
}
