//go:build linux

package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/guest"
)

func TestWrapKeepsTheCode(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		require.NoError(b, os.WriteFile(filepath.Join(b.home, "in put"), []byte("text"), 0o600))
		for name, wrap := range map[string]func([]string, string, string) string{"Wrap": guest.Wrap, "WrapExec": guest.WrapExec} {
			for _, tc := range []struct {
				args           []string
				workdir, stdin string
				code           int
				out            string
			}{
				{[]string{"cat"}, "/", "in put", 0, "text"},
				{[]string{"cat"}, "", "", 0, ""},
				{[]string{"sh", "-c", `echo "$0" "$1"; exit 5`, "a  b", "'"}, "", "", 5, "a  b '\n"},
				{[]string{"sh", "-c", "echo $PWD"}, "/", "", 0, "/\n"},
				{[]string{"sh", "-c", "kill -9 $$"}, "", "", 137, ""},
				{[]string{"true"}, "/no/such/folder", "", 125, ""},
				{[]string{"true"}, "", "no such file", 125, ""},
				{[]string{"no-such-program-7f3a"}, "", "", 127, ""},
				{[]string{"/etc/passwd"}, "", "", 126, ""},
			} {
				out, code := b.run(wrap(tc.args, tc.workdir, tc.stdin) + "\nexit $?")
				assert.Equal(b, tc.code, code, "%s %q", name, tc.args)
				assert.Equal(b, tc.out, string(out), "%s %q", name, tc.args)
			}
		}
	})
}

// TestWrapExecPassesATermOn: what ends the line ends the program and its children.
func TestWrapExecPassesATermOn(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		line := guest.WrapExec([]string{"sh", "-c", `trap "exit 9" TERM; (trap "" TERM; sh -c 'echo $$ > child; exec sleep 600') & echo $$ > ready; wait; wait`}, "", "")
		c := exec.Command(b.shell[0], append(b.shell[1:], "-c", "exec "+line)...)
		c.Env, c.Dir = []string{"HOME=" + b.home, "PATH=" + b.path}, b.home
		require.NoError(b, c.Start())
		program, child := b.number("ready"), b.number("child")
		require.NoError(b, c.Process.Signal(syscall.SIGTERM))
		_ = c.Wait()
		assert.Equal(b, 9, c.ProcessState.ExitCode())
		b.gone(program, "the program survives")
		if b.grouped() {
			b.gone(child, "its child survives")
		}
	})
}

func TestTrailerTellsTheCode(t *testing.T) {
	t.Parallel()
	each(t, func(b box) {
		line := guest.Trailed(guest.Wrap([]string{"sh", "-c", "echo out; printf 'mark-1 0'; exit 7"}, "", ""), "mark-1")
		out, code := b.run(line)
		assert.Zero(b, code)
		rest, inner, seen := guest.CutTrailer(out, "mark-1")
		assert.True(b, seen)
		assert.Equal(b, 7, inner)
		assert.Equal(b, "out\nmark-1 0", string(rest))
	})
	for _, out := range []string{"", "mark-1 7\n", "\nmark-1 7", "\nmark-1 x\n", "\nmark-1 -1\n", "\nmark-1 256\n", "\nmark-1 7\nmore\n"} {
		rest, _, seen := guest.CutTrailer([]byte(out), "mark-1")
		assert.False(t, seen, "%q", out)
		assert.Equal(t, out, string(rest))
	}
}

// FuzzQuote holds that a real shell gives the word back.
func FuzzQuote(f *testing.F) {
	for _, word := range []string{"", "'", `"`, "a b", "$(id)", "`id`", "\n", "\\", "-n", "\xff\xfe", "é", "'\\''", "!", "#", "\x01\x81\x82\x88"} {
		f.Add(word, "x")
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		if strings.Contains(one+two, "\x00") || len(one)+len(two) > 20000 {
			return // no shell word
		}
		out, err := exec.Command("sh", "-c", `printf '%s\0' `+guest.Quote(one, two)).Output()
		if err != nil || string(out) != one+"\x00"+two+"\x00" {
			t.Fatalf("%q %q gives %q, %v", one, two, out, err)
		}
	})
}
