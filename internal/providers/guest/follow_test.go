//go:build linux

package guest_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/testkit/tiertest"
)

// stream is a guest.Stream of the box, which counts its scripts.
func (b box) stream(n *atomic.Int32) guest.Stream {
	return func(ctx context.Context, text string, out io.Writer) (int, error) {
		n.Add(1)
		c := exec.CommandContext(ctx, b.shell[0], append(append([]string(nil), b.shell[1:]...), "-c", text)...)
		c.Env, c.Dir, c.Stdout = []string{"HOME=" + b.home, "PATH=" + b.path}, b.home, out
		c.WaitDelay = time.Second
		err := c.Run()
		if c.ProcessState == nil {
			return -1, err
		}
		return c.ProcessState.ExitCode(), nil
	}
}

// TestOneScriptFollowsARun: all of its output in order, also a line that has not ended, and its exit, by one script.
func TestOneScriptFollowsARun(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		shown := filepath.Join(b.home, "shown")
		b.launch("sh", "-c", `seq 1 60000; printf 'open'; until [ -e "$1" ]; do sleep 0.1; done; echo ' ends'; echo next; echo -next; echo -done; echo error >&2; exit 7`, "sh", shown)
		var w guest.Watches
		var n atomic.Int32
		var out, errs strings.Builder
		opened := false
		for line, err := range w.Follow(b.Context(), "id", b.stream(&n), providers.LogQuery{Follow: true, Open: true}) {
			require.NoError(b, err)
			require.Nil(b, line.Gap)
			switch {
			case line.OpenBytes > 0:
				opened = true
				require.NoError(b, os.WriteFile(shown, nil, 0o600))
			case line.Stream == "stdout":
				out.WriteString(line.Text + "\n")
			default:
				errs.WriteString(line.Text + "\n")
			}
			if exit, known := w.Exit("id"); known && exit != nil {
				assert.Equal(b, 7, *exit.Code)
			}
		}
		assert.Equal(b, count(60000)+"open ends\nnext\n-next\n-done\n", out.String())
		assert.Equal(b, "error\n", errs.String())
		assert.True(b, opened, "a prompt is shown")
		assert.Equal(b, int32(1), n.Load(), "scripts")
		exit, known := w.Exit("id")
		require.True(b, known)
		require.NotNil(b, exit)
		assert.Equal(b, 7, *exit.Code)
	})
}

// TestWhatIsFollowedIsKnownToRun, and only while it is followed.
func TestWhatIsFollowedIsKnownToRun(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		b.launch("sh", "-c", "seq 1 9; exec sleep 600")
		var w guest.Watches
		var n atomic.Int32
		_, known := w.Exit("id")
		assert.False(b, known)
		ctx, cancel := context.WithTimeout(b.Context(), tiertest.Limit(b))
		defer cancel()
		var got []string
		for line, err := range w.Follow(ctx, "id", b.stream(&n), providers.LogQuery{Follow: true, Tail: 3}) {
			require.NoError(b, err)
			if got = append(got, line.Text); len(got) == 3 {
				exit, known := w.Exit("id")
				assert.True(b, known)
				assert.Nil(b, exit)
				break
			}
		}
		assert.Equal(b, []string{"7", "8", "9"}, got)
		_, known = w.Exit("id")
		assert.False(b, known, "nobody follows it any more")
	})
}

// TestAQuietRunCostsNoProcesses: what a follower runs twice a second counts as work of the sandbox.
func TestAQuietRunCostsNoProcesses(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		wrapped := b.TempDir()
		counted := filepath.Join(wrapped, "counted")
		program, err := exec.LookPath("wc")
		require.NoError(b, err)
		require.NoError(b, os.WriteFile(filepath.Join(wrapped, "wc"), []byte("#!/bin/sh\necho >>"+counted+"\nexec "+program+` "$@"`+"\n"), 0o700))
		b.launch("sh", "-c", "echo one; sleep 2; echo two; exec sleep 600")
		b.path = wrapped + string(os.PathListSeparator) + b.path
		ctx, cancel := context.WithTimeout(b.Context(), tiertest.Limit(b))
		defer cancel()
		var n atomic.Int32
		from, to := io.Pipe()
		go func() {
			_, err := b.stream(&n)(ctx, guest.FollowScript("", guest.Offsets{}), to)
			_ = to.CloseWithError(err)
		}()
		rounds, calls, quiet := 0, 0, 0
		for lines := bufio.NewScanner(from); quiet < 6 && lines.Scan(); {
			if lines.Text() != "-next" {
				continue
			}
			rounds++
			text, _ := os.ReadFile(counted)
			if quiet++; len(text) > calls || !strings.Contains(b.output(), "two") {
				quiet = 0
			}
			calls = len(text)
			require.Less(b, rounds, 100, "each round starts processes: %d", calls)
		}
		assert.Equal(b, 6, quiet)
	})
}

// output is what the run has written to stdout.
func (b box) output() string {
	text, _ := os.ReadFile(filepath.Join(b.home, ".sbx", "runs", "main", "out.0"))
	return string(text)
}
