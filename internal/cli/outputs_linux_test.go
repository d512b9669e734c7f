package cli_test

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
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
	const mark = "== next block =="
	var script strings.Builder
	for _, o := range all {
		script.WriteString(strings.Join(o.commands, "\n") + "\necho '" + mark + "'\n")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script.String())
	var errs, drawn bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = root, environ, &errs
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 100})
	require.NoError(t, err)
	_, _ = io.Copy(&drawn, terminal) // a terminal that nobody holds any more is an error
	require.NoError(t, cmd.Wait(), "%s\n%s", drawn.String(), errs.String())
	parts := strings.Split(strings.ReplaceAll(drawn.String(), "\r\n", "\n"), mark+"\n")
	require.Len(t, parts, len(all)+1)
	return parts[:len(all)]
}

// steady takes out of a line what differs from run to run and from machine to machine: ids, numbers, colours, spaces.
func steady(line string) string {
	line = regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(line, "")
	line = regexp.MustCompile(`\blocal/[a-z0-9]{10}\b`).ReplaceAllString(line, "local/ID")
	line = regexp.MustCompile(`\b(SBX_SANDBOX_ID=)[a-z0-9]+`).ReplaceAllString(line, "${1}ID")
	line = regexp.MustCompile(`\bt-[a-z0-9]{12}\b`).ReplaceAllString(line, "t-ID")
	line = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)?(ms|s|m|h)?\b%?`).ReplaceAllString(line, "N")
	line = regexp.MustCompile(`N(mN|hN)?s?\b`).ReplaceAllString(line, "N")
	return strings.TrimSpace(regexp.MustCompile(` +`).ReplaceAllString(line, " "))
}

// missingLines are the lines that a page shows and the commands have not printed in this order; "..." stands for any lines.
func missingLines(shown []string, printed string) []string {
	rest := strings.Split(printed, "\n")
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
