package providertest

import (
	"encoding/hex"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// programChecks are the checks of what a program gets and of how its end is told: what a shell on the
// way may change.
func programChecks() []Check {
	return []Check{
		{"exec_gives_a_program_its_arguments", "exec", checkExecArguments},
		{"exec_changes_no_variable", "exec", checkExecRawEnv},
		{"exec_runs_the_program_that_was_named", "exec", checkExecHarmless},
		{"exec_returns_each_code_and_signal", "exec", checkExecEachEnd},
		{"exec_says_that_a_folder_is_missing", "exec", checkExecWorkdir},
		{"create_gives_a_program_its_arguments", "create", checkCreateArguments},
	}
}

// RunPrograms runs only the checks of what a program gets and of how its end is told, for one more
// shell or way; in the long run with all ends that a program can have.
func RunPrograms(t *testing.T, c Config) {
	t.Helper()
	c.everyEnd = tiertest.IsLong("each exit code and each signal of a program under each shell; else those that shells and launchers have a meaning for")
	for _, check := range programChecks() {
		t.Run(check.Name, func(t *testing.T) { runCheck(t, c, check) })
	}
}

// trickyArguments are words that one shell or another changes where they are not quoted: it splits
// them, expands them, takes them for options, or refuses them.
func trickyArguments() []string {
	return []string{
		"two words", "", " ", "it's", `"quoted"`, `'`, `''`, "$HOME", "${x:-y}", "$(id)", "`id`", "*", "/etc/*", "no-such-*-file", "[a", "?", "{a,b}", "~", "~root",
		"!", "!!", "=ls", "=no-such-program", "a=b", "line\nbreak", "end\n", "\n", `back\slash`, `\`, `\n\c\0101`, "-n", "-e", "--", "-", "%", "%s%d%%", "100%", "#", "a#b",
		";", "&", "|", "<", ">", "(", ")", "\t", "\r", "\a\x1b\x01\x7f", "é", "日本", "\u2028", "if", "function", "rm /tmp/x", "would rm /tmp/victim",
		strings.Repeat("x", 1000),
	}
}

// rawArguments are no UTF-8: a provider whose API takes text alone gives them all the same, or refuses
// them before it does anything.
func rawArguments() []string {
	return []string{"\xff\xfe", "a\x80\x81\x82\x88b", "\xc3", "'\xff'", "\\\xff\\0101", "é\xff\n"}
}

// printArguments is a program that writes its arguments as hexadecimal bytes, each ended by 00: not
// every API keeps the bytes of output.
func printArguments(args []string) []string {
	return append([]string{"sh", "-c", `printf '%s\0' "$@" | od -An -v -tx1`, "sbx"}, args...)
}

// checkArguments checks what such a program has written.
func checkArguments(t T, args []string, written string) {
	raw, err := hex.DecodeString(strings.Join(strings.Fields(written), ""))
	require.NoError(t, err, "%.200q", written)
	got := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	require.Len(t, got, len(args), "%.1000q", got)
	for i, want := range args {
		assert.Equal(t, want, got[i], "argument %d", i)
	}
}

func checkExecArguments(t T, s *Subject) {
	s.skipSimulated(t)
	id := s.startSandbox(t, sandbox.Spec{})
	got := s.execCommand(s.callContext(t), id, "", providers.Command{Args: printArguments(trickyArguments())})
	require.NoError(t, got.err)
	checkArguments(t, trickyArguments(), got.stdout.String())
	raw := s.execCommand(s.callContext(t), id, "", providers.Command{Args: printArguments(rawArguments())})
	if raw.err == nil {
		checkArguments(t, rawArguments(), raw.stdout.String())
		return
	}
	assert.Equal(t, fault.KindUsage, fault.KindOf(raw.err), "%v", raw.err)
	assert.Zero(t, raw.stdout.Len())
}

// checkExecRawEnv checks that no variable is changed on its way.
func checkExecRawEnv(t T, s *Subject) {
	s.skipSimulated(t)
	id := s.startSandbox(t, sandbox.Spec{})
	c := shProgram(`printf %s "$SBX_CHECK" | od -An -v -tx1`)
	c.Env = []string{"SBX_CHECK=secret\xff"}
	got := s.execCommand(s.callContext(t), id, "", c)
	if got.err == nil {
		assert.Equal(t, hex.EncodeToString([]byte("secret\xff")), strings.Join(strings.Fields(got.stdout.String()), ""))
		return
	}
	assert.Equal(t, fault.KindUsage, fault.KindOf(got.err), "%v", got.err)
	assert.Contains(t, got.err.Error(), "SBX_CHECK")
	assert.NotContains(t, got.err.Error(), "secret")
}

// checkExecHarmless names a program whose arguments would do harm if one of them were taken for a
// program.
func checkExecHarmless(t T, s *Subject) {
	s.skipSimulated(t)
	id := s.startSandbox(t, sandbox.Spec{})
	made := s.execCommand(s.callContext(t), id, "", providers.Command{Args: []string{"mktemp"}})
	require.NoError(t, made.err)
	victim := strings.TrimSpace(made.stdout.String())
	for _, args := range [][]string{{"echo", "would", "rm", victim}, {"env", "echo", "would rm " + victim}} {
		got := s.execCommand(s.callContext(t), id, "", providers.Command{Args: args})
		require.NoError(t, got.err)
		words := args[slices.Index(args, "echo")+1:]
		assert.Equal(t, strings.Join(words, " ")+"\n", got.stdout.String(), "%q", args)
	}
	removed := s.execCommand(s.callContext(t), id, "", providers.Command{Args: []string{"rm", victim}})
	require.NoError(t, removed.err)
	require.NotNil(t, removed.exit.Code)
	assert.Zero(t, *removed.exit.Code, "an argument was run as a program: %s", removed.stderr.String())
}

// endings are exit codes and signals: those that a shell, a launcher or a reader has a meaning for,
// or all that end a program.
func endings(every bool) (codes, signals []int) {
	if !every {
		return []int{0, 127, 255}, []int{9}
	}
	for code := range 256 {
		codes = append(codes, code)
	}
	for signal := 1; signal <= 64; signal++ {
		ignored := []int{17, 18, 19, 20, 21, 22, 23, 28} // CHLD, CONT, the stops, URG, WINCH
		libraries := []int{32, 33}                       // of the C library
		if !slices.Contains(ignored, signal) && !slices.Contains(libraries, signal) {
			signals = append(signals, signal)
		}
	}
	return codes, signals
}

// checkExecEachEnd checks that a program's end arrives as itself, and that the program ran once.
func checkExecEachEnd(t T, s *Subject) {
	s.skipSimulated(t)
	id := s.startSandbox(t, sandbox.Spec{})
	codes, signals := endings(s.c.everyEnd)
	check := func(script string, code int) {
		got := s.execCommand(s.callContext(t), id, "", shProgram("echo once; "+script))
		require.NoError(t, got.err, "%s", script)
		require.NotNil(t, got.exit.Code, "%s", script)
		assert.Equal(t, code, *got.exit.Code, "%s", script)
		assert.Equal(t, "once\n", got.stdout.String(), "%s", script)
	}
	for _, code := range codes {
		check("exit "+strconv.Itoa(code), code)
	}
	for _, signal := range signals {
		check(`ulimit -c 0; exec awk 'BEGIN { "kill -`+strconv.Itoa(signal)+` $PPID" | getline }'`, 128+signal) // shells ignore some signals
	}
}

// checkExecWorkdir checks that a missing folder is not taken for a missing program, or for a program
// that failed.
func checkExecWorkdir(t T, s *Subject) {
	s.skipSimulated(t)
	id := s.startSandbox(t, sandbox.Spec{})
	const folder = "/no/such folder"
	for _, stdin := range []io.Reader{nil, strings.NewReader("x")} {
		err := s.execIn(t, id, folder, stdin)
		require.Error(t, err)
		assert.Equal(t, fault.KindLauncher, fault.KindOf(err), "%v", err)
		assert.Contains(t, err.Error(), strconv.Quote(folder))
		assert.NotEmpty(t, fault.HintOf(err))
		assert.ErrorIs(t, err, providers.ErrNoWorkdir) //nolint:testifylint // both are checked
	}
	launcher, can := providers.As[providers.Launcher](s.P)
	if !can {
		return
	}
	_, err := launcher.Create(s.callContext(t), sandbox.Spec{Command: []string{"true"}, Workdir: folder})
	require.ErrorIs(t, err, providers.ErrNoWorkdir, "a create says what is missing, too")
	assert.Contains(t, err.Error(), strconv.Quote(folder))
}

func (s *Subject) execIn(t T, id, folder string, stdin io.Reader) error {
	_, err := requireAbility[providers.Commander](t, s).Exec(s.callContext(t), id,
		providers.Command{Args: []string{"true"}, Workdir: folder, Stdin: stdin, Stdout: io.Discard, Stderr: io.Discard})
	return err
}

func checkCreateArguments(t T, s *Subject) {
	s.skipSimulated(t)
	r := requireAbility[providers.LogReader](t, s)
	args := append(trickyArguments(), slices.Repeat([]string{strings.Repeat("long 'word' ", 5000)}, 2)...) // more than one argument of Linux holds
	launcher := requireAbility[providers.Launcher](t, s)
	made, err := launcher.Create(s.callContext(t), sandbox.Spec{Command: printArguments(slices.Concat(args, rawArguments())), KeepAfterExit: true})
	if fault.KindOf(err) == fault.KindUsage {
		made, err = launcher.Create(s.callContext(t), sandbox.Spec{Command: printArguments(args), KeepAfterExit: true})
	} else {
		args = slices.Concat(args, rawArguments())
	}
	require.NoError(t, err)
	s.deleteAfter(t, made.ID)
	var text strings.Builder
	require.True(t, s.c.Eventually(s.c.Limit, func() bool {
		text.Reset()
		lines, err := readLogs(s.callContext(t), r, made.ID, providers.LogQuery{})
		for _, l := range lines {
			text.WriteString(l.Text + "\n")
		}
		return err == nil && strings.Count(text.String(), " 00") == len(args)
	}), "its log is not complete: %.500q", text.String())
	checkArguments(t, args, text.String())
}

// skipSimulated skips a check that needs real programs, where they are simulated.
func (s *Subject) skipSimulated(t T) {
	t.Helper()
	if s.c.Simulated {
		t.Skipf("%s simulates its programs", s.P.Type())
	}
}
