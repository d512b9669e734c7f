package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// waitFor waits until the screen has one of the texts, and gives the one.
func (x *terminal) waitFor(texts ...string) string {
	x.t.Helper()
	limit := time.Now().Add(tiertest.Limit(x.t))
	for time.Now().Before(limit) {
		shown := x.screen()
		for _, text := range texts {
			if strings.Contains(shown, text) {
				return text
			}
		}
		time.Sleep(50 * time.Millisecond) // a terminal tells nobody that it has changed
	}
	x.t.Fatalf("the screen never had %q:\n%s", texts, x.screen())
	return ""
}

var gateWord = regexp.MustCompile(`press 6 to answer: type (\S+) to`)

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
		workThroughRunbook(x)
		assert.Empty(t, run("ls", "--stuck", "--look", "-o", "name"))
		assert.Contains(t, run("runbook", "runs"), "sandbox-stuck")
	})
	t.Run("26 of 300", func(t *testing.T) {
		t.Parallel()
		env := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		x := openTerminal(t, env, filepath.Join(bin, "staged-incident"), "-idle", "--", sbx)
		x.waitFor("[All 300]")
		workThroughRunbook(x)
	})
}

// workThroughRunbook answers the gates of the runbook until its verification has run, and quits.
func workThroughRunbook(x *terminal) {
	x.t.Helper()
	x.press("1")
	for answers := 0; ; answers++ {
		if x.waitFor("press 6 to answer", "7 holds", "7 missed", "7 not known") != "press 6 to answer" {
			break
		}
		require.Less(x.t, answers, 10)
		shown := x.screen()
		x.press("6")
		if word := gateWord.FindStringSubmatch(shown); word != nil {
			x.waitFor("anything else to leave it: _")
			x.press(strings.Split(word[1], "")...)
		} else {
			x.waitFor("skip: _")
		}
		x.press("Enter")
		x.waitFor("press 6 to answer", "7 holds", "7 missed", "7 not known", "at work")
	}
	assert.Regexp(x.t, ` done +(Terminate|Set|Raise|End) `, x.screen())
	x.press("7")
	x.waitFor("Running sandboxes at one provider (took")
	x.press("q")
	assert.LessOrEqual(x.t, x.keys, 40)
	x.t.Logf("%d keys", x.keys)
}
