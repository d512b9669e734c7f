//go:build linux

package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

func TestKillTakesTheWholeTree(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sh", "-c", `trap "" TERM
(sh -c 'echo $$ > child; exec sleep 600' &)
if command -v setsid; then (setsid sh -c 'echo $$ > left; exec sleep 600' &); else cp child left; fi
(env -i sh -c 'echo $$ > bare; exec sleep 600' &)
(set -m 2>/dev/null; env -i sh -c 'echo $$ > apart; exec sleep 600' &)
sleep 600 & wait`)
		var pids []int
		for _, name := range []string{"child", "bare"} {
			pids = append(pids, b.number(name))
		}
		if !b.bare {
			pids = append(pids, b.number("left"), b.number("apart"))
		}
		bystander := b.start(guest.Program{Tag: "main2", Args: []string{"sleep", "600"}})
		_, code := b.run(guest.KillScript("", 9))
		assert.Zero(b, code)
		exit := b.ended("")
		assert.Equal(b, 137, *exit.Code)
		assert.Equal(b, sandbox.ClassKilledByUs, exit.Class)
		assert.Equal(b, sandbox.CauseStopped, exit.Cause)
		for i, pid := range pids {
			if i == 1 && !b.grouped() {
				continue // without a group nothing holds one that threw its environment away
			}
			b.gone(pid, "one of the tree survives")
		}
		assert.True(b, running(bystander), "another run dies too")
	})
}

// TestAPoliteKillIsHeardOnce: some programs take a second TERM as a request to stop at once.
func TestAPoliteKillIsHeardOnce(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sh", "-c", `trap 'n=$((n+1)); [ $n = 1 ] && (sleep 1; exit 0) && exit $n' TERM; n=0; echo $$ > ready; while :; do sleep 0.1; done`)
		b.number("ready")
		b.run(guest.KillScript("", 15))
		exit := b.ended("")
		assert.Equal(b, 1, *exit.Code)
		assert.Equal(b, sandbox.ClassStopped, exit.Class)
	})
}

func TestAKillThatWasNotTheEndIsNotItsCause(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sh", "-c", `trap "" TERM; echo $$ > ready; while [ ! -e go ]; do sleep 0.05; done; kill -9 $$`)
		b.number("ready")
		b.run(guest.KillScript("", 15))
		require.NoError(b, os.WriteFile(filepath.Join(b.home, "go"), nil, 0o600))
		exit := b.ended("")
		assert.Equal(b, sandbox.ClassKilledUnknown, exit.Class)
		assert.Equal(b, "signal sent by sbx", exit.Evidence[len(exit.Evidence)-1].What)
	})
}

func TestKillMarkedKillsThoseAlone(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		if b.bare {
			b.oldGrep()
		}
		start := func(env string) *exec.Cmd {
			c := exec.Command("sleep", "600")
			c.Env = []string{"HOME=" + b.home, env}
			require.NoError(b, c.Start())
			return c
		}
		mark := "SBX_EXEC=a " + b.home // another box kills in all of /proc, too
		marked, other, longer := start(mark), start("SBX_EXEC=c"), start(mark+"c")
		out, code := b.run(guest.KillMarkedScript(mark))
		assert.Zero(b, code)
		assert.Contains(b, string(out), "signalled ")
		require.NotEqual(b, "signalled 0\n", string(out))
		require.Error(b, marked.Wait())
		assert.True(b, running(other.Process.Pid) && running(longer.Process.Pid))
		b.clear()
		_, _ = other.Wait(), longer.Wait()
	})
}
