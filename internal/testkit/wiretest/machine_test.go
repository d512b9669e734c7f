//go:build linux

package wiretest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

func start(t *testing.T, m *Machine, p Process) *Running {
	t.Helper()
	r, err := m.Start(p)
	require.NoError(t, err)
	return r
}

func sh(text string) []string { return []string{"sh", "-c", text} }

// appears waits for a file of the machine and returns the number in it.
func appears(t *testing.T, m *Machine, name string) int {
	t.Helper()
	n := 0
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(m.Home, name))
		n, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil && n > 0
	}, tiertest.Limit(t), 5*time.Millisecond)
	return n
}

func exists(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, living := parseStat(string(text))
	return err == nil && living
}

func TestAMachineRunsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	m := NewMachine(t, "")
	var out, errs bytes.Buffer
	r := start(t, m, Process{
		Args: sh(`cat; echo "$HOME|$PWD|$WORD"; env | wc -l; echo wrong >&2; exit 3`), Env: []string{"WORD=a b"},
		Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &errs,
	})
	code, signal := r.Wait()
	assert.Equal(t, 3, code)
	assert.Zero(t, signal)
	lines := strings.Split(out.String(), "\n")
	assert.Equal(t, []string{"in", m.Home + "|" + m.Home + "|a b"}, lines[:2])
	n, err := strconv.Atoi(strings.TrimSpace(lines[2]))
	require.NoError(t, err)
	assert.Less(t, n, 8, "the environment of the test leaks")
	assert.Equal(t, "wrong\n", errs.String())
	require.ErrorIs(t, r.Signal(syscall.SIGTERM), os.ErrProcessDone)
	assert.False(t, r.SignalChild(syscall.SIGTERM))
}

func TestAMachineCannotRunEverything(t *testing.T) {
	t.Parallel()
	m := NewMachine(t, "")
	require.NoError(t, os.WriteFile(filepath.Join(m.Home, "plain"), []byte("x"), 0o600))
	for want, args := range map[error][]string{
		exec.ErrNotFound: {"no-such-program-7f3a"}, fs.ErrNotExist: {"/no/such/program"}, fs.ErrPermission: {"./plain"},
	} {
		_, err := m.Start(Process{Args: args})
		require.ErrorIs(t, err, want)
		assert.Equal(t, !errors.Is(want, fs.ErrPermission), Missing(err))
	}
	_, err := m.Start(Process{})
	require.ErrorIs(t, err, exec.ErrNotFound)
	_, err = m.Start(Process{Args: sh("true"), Dir: "/no/such/folder"})
	require.ErrorIs(t, err, fs.ErrNotExist)
	m.Stop()
	_, err = m.Start(Process{Args: sh("true")})
	require.ErrorIs(t, err, ErrDead)
}

// TestTheKillMatrix: the process alone, its newest child alone, its group.
func TestTheKillMatrix(t *testing.T) {
	t.Parallel()
	const script = `sleep 600 & echo $! > first; sh -c 'echo $$ > second; exec sleep 600'; echo $? > status; exit 4`
	for name, tc := range map[string]struct {
		act    func(r *Running) bool
		code   int
		signal syscall.Signal
		left   int // of the children
	}{
		"the process": {func(r *Running) bool { return r.Signal(syscall.SIGTERM) == nil }, -1, syscall.SIGTERM, 2},
		"its child":   {func(r *Running) bool { return r.KillChild() }, 4, 0, 1},
		"its group":   {func(r *Running) bool { r.KillGroup(); return true }, -1, syscall.SIGKILL, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMachine(t, "")
			r := start(t, m, Process{Args: sh(script)})
			first, second := appears(t, m, "first"), appears(t, m, "second")
			require.True(t, tc.act(r))
			code, signal := r.Wait()
			assert.Equal(t, tc.code, code)
			assert.Equal(t, tc.signal, signal)
			require.Eventually(t, func() bool { return m.Processes() == tc.left }, tiertest.Limit(t), 5*time.Millisecond)
			if tc.left > 0 {
				assert.True(t, exists(first))
			}
			assert.Equal(t, tc.left == 2, exists(second))
			if tc.code == 4 {
				assert.Equal(t, 137, appears(t, m, "status"))
			}
		})
	}
}

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	m, other := NewMachine(t, ""), NewMachine(t, "")
	bystander := start(t, other, Process{Args: []string{"sleep", "600"}})
	var out bytes.Buffer
	start(t, m, Process{Args: sh(`(trap "" TERM HUP; setsid sh -c 'echo $$ > left; sleep 600; echo' &); (env -i sh -c 'echo $$ > bare; exec sleep 600' &)`), Stdout: &out})
	pid, bare := appears(t, m, "left"), appears(t, m, "bare")
	assert.GreaterOrEqual(t, m.Processes(), 2)
	m.Stop()
	assert.Zero(t, m.Processes())
	assert.False(t, exists(pid), "one that left the group survives")
	assert.False(t, exists(bare), "one without an environment survives")
	assert.True(t, exists(bystander.PID), "another machine's process dies")
	m.Stop()
}

// TestAReaderWithoutEndDoesNotHideTheExit: a client may keep its stdin open.
func TestAReaderWithoutEndDoesNotHideTheExit(t *testing.T) {
	t.Parallel()
	m := NewMachine(t, "")
	reader, writer := io.Pipe()
	t.Cleanup(func() { _ = writer.Close() })
	r := start(t, m, Process{Args: sh("read line; exit 5"), Stdin: reader})
	_, err := writer.Write([]byte("word\n"))
	require.NoError(t, err)
	code, _ := r.Wait()
	assert.Equal(t, 5, code)
}

func TestParseStatOfOddNames(t *testing.T) {
	t.Parallel()
	const tail = " S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0"
	for _, name := range []string{"sh", "a) Z 9 9", ") (", ""} {
		got, ok := parseStat("7 (" + name + ")" + tail)
		assert.True(t, ok, name)
		assert.Equal(t, process{pid: 7, parent: 1, group: 7, start: 4242}, got)
	}
	for _, text := range []string{"", "7", "7 (sh) Z" + tail[2:], "x (sh)" + tail, "7 (sh) S 1 x" + tail[7:], "7 (sh) S 1 7"} {
		_, ok := parseStat(text)
		assert.False(t, ok, "%q", text)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (sh) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := parseStat(text); ok && !strings.HasPrefix(strings.TrimLeft(text, "+0"), strconv.Itoa(p.pid)) && p.pid != 0 {
			t.Fatalf("%q gives %+v", text, p)
		}
	})
}
