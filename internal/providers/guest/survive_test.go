//go:build linux

package guest_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"al.essio.dev/pkg/shellescape"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// TestARunSurvivesItsCall: a server may send SIGHUP or SIGKILL to the group of the call that
// launched a program.
func TestARunSurvivesItsCall(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		var out bytes.Buffer
		c := exec.Command(b.shell[0], append(b.shell[1:], "-c", guest.LaunchScript(guest.Program{Args: []string{"sh", "-c", `echo $$ > ready; while [ ! -e go ]; do sleep 0.05; done; echo end; exit 8`}})+"\nsleep 600")...)
		c.Env, c.Dir = []string{"HOME=" + b.home, "PATH=" + b.path}, b.home
		c.Stdout = &out
		c.SysProcAttr, c.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
		require.NoError(b, c.Start())
		b.number("ready")
		signals := []syscall.Signal{syscall.SIGHUP}
		if b.grouped() {
			signals = append(signals, syscall.SIGKILL)
		}
		for _, s := range signals {
			require.NoError(b, syscall.Kill(-c.Process.Pid, s))
		}
		_ = c.Process.Kill() // under nohup it hears no HUP
		_ = c.Wait()
		require.NoError(b, os.WriteFile(filepath.Join(b.home, "go"), nil, 0o600))
		assert.Equal(b, 8, *b.ended("").Code)
		assert.Equal(b, "end\n", string(b.read(guest.Offsets{}).Out))
	})
}

// TestTheKernelsCounterMakesItOOM runs programs in a group with 48 MiB.
func TestTheKernelsCounterMakesItOOM(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args       []string
		code       int
		class      sandbox.Class
		cause      sandbox.Cause
		confidence sandbox.Confidence
	}{
		"the program": {[]string{"dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"}, 137, sandbox.ClassOOM, sandbox.CauseOOM, sandbox.Probable},
		"its child":   {[]string{"sh", "-c", "dd if=/dev/zero of=/dev/null bs=200M count=1; exit 3"}, 3, sandbox.ClassAgentError, sandbox.CauseOOMChild, sandbox.Probable},
		"neither":     {[]string{"sh", "-c", "kill -9 $$"}, 137, sandbox.ClassKilledUnknown, sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := memoryGroup(t)
			b := box{T: t, shell: []string{"sh"}, home: t.TempDir(), path: os.Getenv("PATH")}
			defer b.clear()
			out, code := b.run("echo $$ > " + shellescape.Quote(filepath.Join(group, "cgroup.procs")) + " || exit 99\n" + guest.LaunchScript(guest.Program{Args: tc.args}))
			require.Zero(t, code, "%s", out)
			exit := b.ended("")
			assert.Equal(t, tc.code, *exit.Code)
			assert.Equal(t, tc.class, exit.Class, "%+v", exit.Evidence)
			assert.Equal(t, tc.cause, exit.Cause)
			assert.Equal(t, tc.confidence, exit.Confidence)
		})
	}
}

// memoryGroup makes a group below the test's own, or skips.
func memoryGroup(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		root, file := "/sys/fs/cgroup", "memory.max"
		if parts[1] == "memory" {
			root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		dir := filepath.Join(root, parts[2], "sbx-guest-"+strconv.FormatInt(time.Now().UnixNano(), 36))
		if os.Mkdir(dir, 0o700) != nil {
			continue
		}
		t.Cleanup(func() {
			require.Eventually(t, func() bool { return os.Remove(dir) == nil }, tiertest.Limit(t), 10*time.Millisecond)
		})
		limit, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0) // what is not there is no such group
		if err != nil {
			continue
		}
		_, err = limit.WriteString("48M")
		if limit.Close(); err == nil {
			return dir
		}
	}
	t.Skip("no memory group can be made here")
	return ""
}
