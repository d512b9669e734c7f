//go:build linux

package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"al.essio.dev/pkg/shellescape"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/providers/guest"
	"sbx/internal/testkit/wiretest"
)

// TestEveryShellReadsALineAlike pipes lines to a shell, as a daemon does, and lets /bin/sh alone read
// what is in them: it splits words, and keeps a pattern that matches nothing.
func TestEveryShellReadsALineAlike(t *testing.T) {
	t.Parallel()
	const script = `words='a b'; set -- $words; echo $# none-*-here =ls "!!" ''; printf %s `
	wiretest.EachShell(t, func(t *testing.T, shell string) {
		t.Helper()
		home := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(home, ".zshenv"), []byte("setopt rcquotes extendedglob\n"), 0o600))
		for name, word := range map[string]string{
			"plain": "x", "quotes": `'' 'a' "b" '''`, "lines": "a\n\nb\n\n", "backslashes": `\n\\c\0101 %s`,
			"bytes": "\xff'\x80\x81\x88\\\xc3", "long": strings.Repeat("it's é\\\n", 15_000), "long bytes": strings.Repeat("\xff\\'", 15_000),
		} {
			p := wiretest.PipedShell(shell)
			c := exec.Command(p.Args[0], p.Args[1:]...)
			c.Dir, c.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
			c.Stdin = strings.NewReader(guest.Line("sbx", script+shellescape.Quote(word)))
			out, err := c.Output()
			require.NoError(t, err, name)
			assert.Equal(t, "2 none-*-here =ls !! \n"+word, string(out), name)
		}
	})
}

// TestAScriptKeepsItsName: a client distinguishes scripts of sbx by their $0, and both forms have it.
func TestAScriptKeepsItsName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"echo $0", "echo $0 # \xff"} {
		argv := guest.Argv("sbx-probe", text)
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		require.NoError(t, err)
		assert.Equal(t, "sbx-probe\n", string(out))
		assert.Equal(t, "sbx-probe", argv[3])
	}
}

func TestTextArgs(t *testing.T) {
	t.Parallel()
	args := []string{"printf", `%s`, "'\xff' é"}
	assert.Equal(t, args[:2], guest.TextArgs(args[:2]))
	text := guest.TextArgs(args)
	assert.NotContains(t, strings.Join(text, ""), "\xff")
	out, err := exec.Command(text[0], text[1:]...).Output()
	require.NoError(t, err)
	assert.Equal(t, args[2], string(out))
}
