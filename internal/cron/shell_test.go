package cron_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cron"
)

// runs gives the command that Vixie cron hands to a shell, by the rules of its
// do_command: a % ends it unless a backslash stands before it, which then goes. A
// backslash takes the meaning from whatever follows, itself included.
func runs(tb testing.TB, line string) (schedule []string, command string) {
	tb.Helper()
	require.NotContains(tb, line, "\n")
	rest := line
	for range 5 {
		var field string
		field, rest, _ = strings.Cut(strings.TrimLeft(rest, " \t"), " ")
		schedule = append(schedule, field)
	}
	var b strings.Builder
	escaped := false
	for _, c := range []byte(rest) {
		switch {
		case escaped && c == '%':
			text := b.String()
			b.Reset()
			b.WriteString(text[:len(text)-1])
		case !escaped && c == '%':
			return schedule, b.String() // the rest is what the command reads
		}
		escaped = !escaped && c == '\\'
		b.WriteByte(c)
	}
	return schedule, b.String()
}

// words has a shell split a command: the program is replaced by one that prints
// what it is given.
func words(tb testing.TB, command string, env ...string) []string {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "sh", "-c", command)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(tb, err, "%s: %s", command, said.String())
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// printer is a program for words.
const printer = `/usr/bin/printf`

func needsPrinter(tb testing.TB) {
	tb.Helper()
	if _, err := exec.LookPath(printer); err != nil {
		tb.Skip("no " + printer + " here, which shows how a shell splits")
	}
}

// plan is one whose program prints its words: the path of the configuration is
// the odd one.
func odd(text string) cron.Plan {
	return cron.Plan{
		Binary: "/opt/s b%x/'sbx'", Config: "/etc/" + text, StateDir: "/var/lib/sbx", Host: "cron-1", Providers: []string{"prod"},
		Ping: "https://hc.example/" + text + "?a=1&b=%20#{layer}", Textfile: "/var/lib/" + text + "/sbx-{layer}.prom",
	}
}

func FuzzQuoting(f *testing.F) {
	for _, seed := range []string{"", " ", "a b", "'", `"`, `\`, "%", `\%`, `%%'\%`, "$HOME", "`id`", "$(id)", "#", "~", "*", "é", "a;b&c|d", "-n", "!"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		needsPrinter(t)
		p := odd(text)
		if p.Check() != nil {
			return // it holds what no line can
		}
		for i, line := range lines(p.Crontab()) {
			e := p.Entries()[i]
			schedule, command := runs(t, line)
			require.Equal(t, e.Schedule, strings.Join(schedule, " "))
			require.Equal(t, e.Argv, words(t, printer+` '%s\0' `+command))
			// a cron that leaves the backslash gives it to the shell, which takes it away
			raw := strings.TrimPrefix(line, e.Schedule+" ")
			require.Equal(t, e.Argv, words(t, printer+` '%s\0' `+raw))
		}
	})
}

// lines are the lines of a crontab that run something.
func lines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
}

// TestLinesAreShell: every command is one that a shell can read, and does what is
// asked in an environment with nothing in it.
func TestLinesAreShell(t *testing.T) {
	t.Parallel()
	needsPrinter(t)
	p := odd("a b")
	p.Needs, p.Env = []string{"E2B_API_KEY"}, []string{"SBX_STATE_DIR=/var/lib/s b%"}
	p.EnvFile = "/etc/s b/cron.env"
	for _, line := range lines(p.Crontab()) {
		_, command := runs(t, line)
		check := exec.CommandContext(t.Context(), "sh", "-n")
		check.Stdin = strings.NewReader(command)
		said, err := check.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, said)
		assert.True(t, strings.HasPrefix(command, `set -a; test ! -r '/etc/s b/cron.env' || . '/etc/s b/cron.env'; set +a; SBX_STATE_DIR='/var/lib/s b'`), command)
	}
}

// TestTheEnvironmentFileIsRead as a shell reads it and before the program runs.
func TestTheEnvironmentFileIsRead(t *testing.T) {
	t.Parallel()
	needsPrinter(t)
	dir := t.TempDir()
	file := dir + "/cron.env"
	write(t, file, "E2B_API_KEY=e2b_1\nOTHER='two words'\n", 0o600)
	program := dir + "/sbx"
	write(t, program, "#!/bin/sh\nprintf '%s\\0' \"$E2B_API_KEY\" \"$OTHER\" \"$SBX_STATE_DIR\" \"$1\"\n", 0o755)
	p := cron.Plan{Binary: program, EnvFile: file, Needs: []string{"E2B_API_KEY", "OTHER"}, Env: []string{"SBX_STATE_DIR=/x y"}, Host: "h"}
	_, command := runs(t, lines(p.Crontab())[0])
	assert.Equal(t, []string{"e2b_1", "two words", "/x y", "cleanup"}, words(t, command))
	require.NoError(t, os.Remove(file))
	assert.Equal(t, []string{"", "", "/x y", "cleanup"}, words(t, command), "sbx itself says what is missing")
}
