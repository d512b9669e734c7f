package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestReusedNumberIsRefused forces the reuse of a PID inside a PID namespace of its own, where
// it disturbs no other process.
func TestReusedNumberIsRefused(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), helperKey+"=reuse", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = ownNamespace()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(err, os.ErrPermission) {
		t.Skipf("no PID namespace may be made here: %v", err)
	}
	require.NoError(t, err, errs.String())
	verdict := strings.TrimSpace(out.String())
	if reason, skip := strings.CutPrefix(verdict, "skip: "); skip {
		t.Skip(reason)
	}
	assert.Equal(t, "ok", verdict)
}

// reusePID is init of the namespace: it ends a victim, gives its number to a
// stranger and says what the victim's identity leads to.
func reusePID() string {
	if err := ownProc(); err != nil {
		return "skip: no procfs of its own: " + err.Error()
	}
	victim, err := startCat()
	if err != nil {
		return err.Error()
	}
	pid := victim.Process.Pid
	recorded, err := Of(pid)
	if err != nil {
		return err.Error()
	}
	h, err := Open(recorded)
	if err != nil {
		return err.Error()
	}
	found, err := Host().Stat(pid)
	if err != nil {
		return err.Error()
	}
	_ = victim.Process.Kill()
	_ = victim.Wait()
	stranger, reason := withNumber(pid)
	if stranger == nil {
		return reason
	}
	verdict := judgeReuse(recorded, found, h)
	_ = stranger.Process.Kill()
	_ = stranger.Wait()
	return verdict
}

func judgeReuse(recorded Process, found Stat, h *Handle) string {
	stranger, err := Of(recorded.PID)
	if err != nil {
		return err.Error()
	}
	alive, aliveErr := recorded.Alive()
	_, openErr := Open(recorded)
	_, foundErr := Host().Open(found)
	sameTick := stranger.StartTicks == recorded.StartTicks
	problems := []struct {
		wrong bool
		say   string
	}{
		{stranger.PidfdInode == recorded.PidfdInode, "the inode came back"},
		{alive || aliveErr != nil, fmt.Sprint("the victim lives again: ", alive, aliveErr)},
		{!errors.Is(openErr, ErrForeign), fmt.Sprint("open gave ", openErr)},
		{!sameTick && !errors.Is(foundErr, ErrForeign), fmt.Sprint("open of what was found gave ", foundErr)},
		{!errors.Is(h.Signal(syscall.SIGKILL), ErrDead), "the old handle signals"},
		{h.Wait(context.Background()) != nil, "the old handle waits"},
	}
	if stranger.PidfdInode == 0 && sameTick {
		return "skip: this kernel has no pidfd inodes, and both started within one tick"
	}
	for _, p := range problems {
		if p.wrong {
			return p.say
		}
	}
	if alive, err := stranger.Alive(); !alive || err != nil {
		return fmt.Sprint("the stranger was hit: ", err)
	}
	return "ok"
}

// withNumber starts a program under a number that was used before; threads of
// this process may take it first, hence the attempts.
func withNumber(pid int) (*exec.Cmd, string) {
	for range 100 {
		err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0)
		if err != nil {
			return nil, "skip: the next process id cannot be set: " + err.Error()
		}
		cmd, err := startCat()
		if err != nil {
			return nil, err.Error()
		}
		if cmd.Process.Pid == pid {
			return cmd, ""
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return nil, "skip: another process or thread always took the number first"
}

func startCat() (*exec.Cmd, error) {
	cmd := exec.Command("cat")
	_, err := cmd.StdinPipe()
	return cmd, errors.Join(err, cmd.Start())
}
