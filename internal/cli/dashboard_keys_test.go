package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// terminal is a real terminal program with a screen that can be read.
type terminal struct {
	t      *testing.T
	socket string
	env    []string
	keys   int // so many were pressed
}

// openTerminal starts a terminal of 120 x 40 cells with a command in it.
func openTerminal(t *testing.T, env []string, command ...string) *terminal {
	t.Helper()
	x := &terminal{t: t, socket: filepath.Join(t.TempDir(), "s"), env: env}
	x.tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "40"}, command...)...)
	t.Cleanup(func() {
		stop := exec.Command("tmux", "-S", x.socket, "kill-server") // it may have ended with its command
		_ = stop.Run()
	})
	return x
}

func (x *terminal) tmux(args ...string) string {
	x.t.Helper()
	cmd := exec.CommandContext(x.t.Context(), "tmux", append([]string{"-S", x.socket}, args...)...)
	cmd.Env = append(x.env, "TERM=screen-256color", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	require.NoError(x.t, err, "%s", out)
	return string(out)
}

// screen is what the terminal shows.
func (x *terminal) screen() string { return x.tmux("capture-pane", "-p") }

// press types keys, one after the other.
func (x *terminal) press(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		x.keys++
		x.tmux("send-keys", k)
	}
}

// until waits for a screen that holds, and gives it.
func (x *terminal) until(what string, holds func(shown string) bool) string {
	x.t.Helper()
	limit := time.Now().Add(tiertest.Limit(x.t))
	for time.Now().Before(limit) {
		if shown := x.screen(); holds(shown) {
			return shown
		}
		time.Sleep(50 * time.Millisecond) // a terminal tells nobody that it has changed
	}
	x.t.Fatalf("the screen never %s:\n%s", what, x.screen())
	return ""
}

// waitFor waits until the screen has a text.
func (x *terminal) waitFor(text string) {
	x.t.Helper()
	x.until("had "+strconv.Quote(text), func(shown string) bool { return strings.Contains(shown, text) })
}

// gateAsks is a question of the run that the sixth step has begun, without an answer yet.
var gateAsks = regexp.MustCompile(`type (\S+?)(?: to .*|): _`)

// TestAnIncidentByKeysAlone: from the first screen through the runbook to the verification, by keys that the
// screen names.
func TestAnIncidentByKeysAlone(t *testing.T) {
	t.Parallel()
	tiertest.SkipShort(t, "builds the program, and waits until real sandboxes are stuck")
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux, the terminal of this test, is not installed; the deep tier installs it")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "sbx/cmd/sbx", "sbx/cmd/staged-incident")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	sbx := filepath.Join(bin, "sbx")

	t.Run("what a drill leaves", func(t *testing.T) {
		t.Parallel()
		home := t.TempDir()
		config := filepath.Join(home, ".config", "sbx", "config.yaml")
		require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o700))
		require.NoError(t, os.WriteFile(config, []byte("thresholds: {stuck_age: 5s, watch_age: 3s, inactivity: 3s}\n"), 0o600))
		env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
		run := func(args ...string) string {
			cmd := exec.CommandContext(t.Context(), sbx, args...)
			var text bytes.Buffer
			cmd.Env, cmd.Stdout = env, &text
			_ = cmd.Run() // a drill whose cleanup has no record counts as failed
			return text.String()
		}
		t.Cleanup(func() {
			clean := exec.Command(sbx, "drill", "--clean")
			clean.Env = env
			_ = clean.Run()
		})
		run("drill", "--keep")
		require.Contains(t, run("ls", "-o", "name"), "local/")
		x := openTerminal(t, env, sbx)
		x.waitFor("drill-hung")
		workThroughRunbook(x, 3)
		assert.Empty(t, run("ls", "--stuck", "--look", "-o", "name"))
		assert.Contains(t, run("runbook", "runs"), "sandbox-stuck")
	})
	t.Run("26 of 300", func(t *testing.T) {
		t.Parallel()
		env := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		x := openTerminal(t, env, filepath.Join(bin, "staged-incident"), "-idle", "--", sbx)
		x.waitFor("All 300")
		workThroughRunbook(x, 26)
	})
}

// workThroughRunbook opens the sixth step, answers the questions of its run until so many are gone, and quits.
func workThroughRunbook(x *terminal, gone int) {
	x.t.Helper()
	x.press("6")
	x.waitFor("6 or Enter begins")
	x.press("6")
	x.waitFor("run b-")
	over := func(shown string) bool { return strings.Contains(shown, strconv.Itoa(gone)+" gone") }
	asked := func(shown string) bool { return over(shown) || gateAsks.MatchString(shown) }
	for shown := x.until("asked", asked); !over(shown); shown = x.until("asked", asked) {
		word := gateAsks.FindStringSubmatch(shown)[1]
		x.press(strings.Split(word, "")...)
		typed := ": " + word + "_"
		x.waitFor(typed) // a key that comes late is another command
		x.press("Enter")
		x.until("took the answer", func(shown string) bool { return !strings.Contains(shown, typed) })
	}
	x.press("7")
	x.waitFor(fmt.Sprintf("%[1]d of %[1]d ended, verified; 0 stuck", gone))
	x.press("q")
	assert.LessOrEqual(x.t, x.keys, 45)
	x.t.Logf("%d keys", x.keys)
}
