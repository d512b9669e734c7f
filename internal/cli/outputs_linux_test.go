package cli_test

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/testkit/tiertest"
)

// shownOutput is the output that a page shows for its commands: a text block behind a block of commands.
type shownOutput struct {
	commands []string
	lines    []string
	at       int
}

// shownOutputs are the blocks of commands of a page, each with its output, if the page shows one.
func shownOutputs(text string) []shownOutput {
	var all []shownOutput
	for _, b := range blocks(text, "") {
		switch last := len(all) - 1; {
		case b.language == "sh":
			all = append(all, shownOutput{commands: b.lines})
		case b.language == "text" && last >= 0 && all[last].lines == nil:
			all[last].lines, all[last].at = b.lines, b.line
		}
	}
	return all
}

// onTerminal runs the blocks of commands of a page in one shell whose stdout is a terminal of 100 columns, and gives what
// each has printed.
func onTerminal(t *testing.T, environ []string, all []shownOutput) []string {
	t.Helper()
	var errs bytes.Buffer
	return drawnBy(t, &exec.Cmd{Dir: root, Env: environ, Stderr: &errs}, 100, "-eu", all)
}

// drawnBy is onTerminal with the folder, the environment and the streams of a command, and with options of the shell.
func drawnBy(t *testing.T, cmd *exec.Cmd, columns uint16, options string, all []shownOutput) []string {
	t.Helper()
	const mark = "== next block =="
	var script strings.Builder
	for _, o := range all {
		script.WriteString(strings.Join(o.commands, "\n") + "\necho '" + mark + "'\n")
	}
	shell := exec.CommandContext(t.Context(), "sh", options, "-c", script.String())
	shell.Dir, shell.Env, shell.Stderr = cmd.Dir, cmd.Env, cmd.Stderr
	cmd = shell
	var drawn bytes.Buffer
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: columns})
	require.NoError(t, err)
	_, _ = io.Copy(&drawn, terminal) // a terminal that nobody holds any more is an error
	require.NoError(t, cmd.Wait(), "%s\n%v", drawn.String(), cmd.Stderr)
	parts := strings.Split(strings.ReplaceAll(drawn.String(), "\r\n", "\n"), mark+"\n")
	require.Len(t, parts, len(all)+1)
	return parts[:len(all)]
}

// steady takes out of a line what differs from run to run and from machine to machine: ids, numbers, colours, spaces.
func steady(line string) string {
	line = regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(line, "")
	line = regexp.MustCompile(`\blocal/[a-z0-9]{10}\b`).ReplaceAllString(line, "local/ID")
	line = regexp.MustCompile(`\b(docker|kind)/[a-z0-9.-]+`).ReplaceAllString(line, "$1/ID")
	line = regexp.MustCompile(`\b(SBX_SANDBOX_ID=)[a-z0-9]+`).ReplaceAllString(line, "${1}ID")
	line = regexp.MustCompile(`\br-[0-9]{8}T[0-9]+-[a-z0-9]+\b`).ReplaceAllString(line, "r-ID")
	line = regexp.MustCompile(`\bt-[a-z0-9]{12}\b`).ReplaceAllString(line, "t-ID")
	line = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?(ms|s|m|h)?\b%?`).ReplaceAllString(line, "N")
	line = regexp.MustCompile(`N(mN|hN)?s?\b`).ReplaceAllString(line, "N")
	return strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(line, " "))
}

// missingLines are the lines that a page shows and the commands have not printed in this order; "..." stands for any lines.
// Where a note is wrapped may depend on how long something took.
func missingLines(shown []string, printed string) []string {
	lines := strings.Split(printed, "\n")
	missing := missingOf(shown, lines)
	if len(missing) > 0 {
		missing = missingOf(unwrappedNotes(shown), unwrappedNotes(lines))
	}
	return missing
}

// unwrappedNotes joins the lines of each note.
func unwrappedNotes(lines []string) (all []string) {
	for _, line := range lines {
		if n := len(all); n > 0 && strings.HasPrefix(all[n-1], "sbx: ") && strings.HasPrefix(line, "  ") {
			all[n-1] += " " + strings.TrimSpace(line)
			continue
		}
		all = append(all, line)
	}
	return all
}

func missingOf(shown, rest []string) []string {
	var missing []string
	for _, line := range shown {
		if line == "..." {
			continue
		}
		found := false
		for i, got := range rest {
			if found = steady(got) == steady(line); found {
				rest = rest[i+1:]
				break
			}
		}
		if !found {
			missing = append(missing, line)
		}
	}
	return missing
}

// machineLine is a line that depends on what the kernel of the machine can enforce, or on a share of a core.
func machineLine(line string) bool {
	return regexp.MustCompile(`^  (owner|limits|state) |^NAME +REF +CPU|^demo .*%`).MatchString(line)
}

// TestTheFirstHourShowsWhatIsPrinted: each output on the page is what its commands print on a terminal.
func TestTheFirstHourShowsWhatIsPrinted(t *testing.T) {
	t.Parallel()
	all := shownOutputs(page(t, "docs/FIRST-HOUR.md"))
	calm := tiertest.IsLong("what the kernel enforces and the load of the machine")
	checked := 0
	for i, printed := range onTerminal(t, home(t), all) {
		var shown []string
		for _, line := range all[i].lines {
			if calm || !machineLine(line) {
				shown = append(shown, line)
			}
		}
		assert.Empty(t, missingLines(shown, printed), "docs/FIRST-HOUR.md:%d: printed:\n%s", all[i].at, printed)
		checked += len(shown)
	}
	assert.Greater(t, checked, 10)
}

// playedPage is where the commands of a page run.
type playedPage struct {
	columns uint16
	world   func(t *testing.T, dir string) map[string]string // what is there; gives variables
	changed func(text string) string                         // of commands and outputs: the ids of this run
	long    bool                                             // it needs a calm machine
}

// TestPagesShowWhatIsPrinted runs the blocks of pageBlocks that are played, each page in an empty home, and compares each
// output on the page with what is printed.
func TestPagesShowWhatIsPrinted(t *testing.T) {
	t.Parallel()
	pages := playedPages()
	for name, checks := range pageBlocks() {
		if !slices.Contains(checks, "played") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, known := pages[name]
			require.True(t, known, "say in playedPages where it runs")
			if p.long {
				tiertest.SkipUnlessLong(t, "the commands of a page on 300 fakes")
			}
			p.play(t, name, checks)
		})
	}
}

func (p playedPage) play(t *testing.T, name string, checks []string) {
	t.Helper()
	var all []shownOutput
	for i, b := range blocks(page(t, name), "") {
		switch played := playedBlocks(b); {
		case checks[i] != "played":
		case len(played) == 1 && played[0].commands == nil && len(all) > 0: // the output of the block before
			all[len(all)-1].lines, all[len(all)-1].at = played[0].lines, b.line
		default:
			all = append(all, played...)
		}
	}
	environ := home(t)
	_, dir, _ := strings.Cut(environ[slices.IndexFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, "HOME=") })], "=")
	for key, value := range p.world(t, dir) {
		environ = append(environ, key+"="+value)
	}
	if p.changed == nil {
		p.changed = func(text string) string { return text }
	}
	run := []shownOutput{{commands: []string{"exec 2>&1"}}}
	for _, o := range all {
		run = append(run, shownOutput{commands: []string{p.changed(strings.Join(o.commands, "\n")), `echo "== exit $? =="`}})
	}
	for i, printed := range drawnBy(t, &exec.Cmd{Dir: dir, Env: environ}, p.columns, "-u", run)[1:] {
		var shown []string
		for _, line := range all[i].lines {
			shown = append(shown, p.changed(line))
		}
		printed = regexp.MustCompile(`\n? *`+regexp.QuoteMeta(dir)+`/`).ReplaceAllString(printed, " ~/") // it may begin a line of its own
		assert.Regexp(t, `== exit (0|3|10) ==\n$`, printed, "%s: %q", name, all[i].commands)
		assert.Empty(t, missingLines(shown, printed), "%s:%d: printed:\n%s", name, all[i].at, printed)
	}
}

// playedBlocks are the commands of a block: of a console each with its output, else all at once. A block of text without
// a command is the output of the block before: it begins without one.
func playedBlocks(b block) []shownOutput {
	var all []shownOutput
	for i, line := range b.lines {
		command, prompted := strings.CutPrefix(line, "$ ")
		switch {
		case strings.Contains(line, "export "): // the test has its own
		case b.language == "console" && prompted:
			all = append(all, shownOutput{commands: []string{command}, at: b.line + i})
		case b.language == "console" && len(all) > 0:
			all[len(all)-1].lines = append(all[len(all)-1].lines, line)
		case b.language == "text":
			for _, command := range commandsOf(block{lines: []string{line}}) {
				all = append(all, shownOutput{commands: []string{command}, at: b.line + i})
			}
		case len(all) == 0:
			all = append(all, shownOutput{commands: []string{line}, at: b.line})
		default:
			all[0].commands = append(all[0].commands, line)
		}
	}
	if b.language == "text" && len(all) == 0 {
		all = append(all, shownOutput{lines: b.lines, at: b.line})
	}
	return all
}

// TestAStaleLineOfAPageIsFound plants one.
func TestAStaleLineOfAPageIsFound(t *testing.T) {
	t.Parallel()
	const text = "```sh\nsbx ls\n```\n\n```text\nREF  STATE\nlocal/fnz7cbb25b  running  27ms\n```\n"
	all := shownOutputs(text)
	require.Len(t, all, 1)
	printed := "REF               STATE\n\x1b[1mlocal/prqd2l4sjc\x1b[m  running  1.5s\n"
	assert.Empty(t, missingLines(all[0].lines, printed))
	for _, stale := range []string{"REF  NAME  STATE", "local/fnz7cbb25b  started  27ms"} {
		assert.Equal(t, []string{stale}, missingLines([]string{stale}, printed), "%q", stale)
	}
}
