//go:build unix

package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/testkit/tiertest"
)

// drillCommand and testCommand are the two commands that a newcomer needs.
const (
	drillCommand = "go run ./cmd/sbx drill"
	testCommand  = "go test ./..."
)

// home is where the commands of a page run: nothing was ever there. What they
// leave running is ended.
func home(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	t.Cleanup(func() { endAll(state) })
	environ := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "SBX_") || strings.HasPrefix(entry, "XDG_") || strings.HasPrefix(entry, "HOME=")
	})
	return append(environ, "HOME="+dir, "SBX_STATE_DIR="+state, "TERM=dumb", "GOFLAGS="+goEnv(t, "GOFLAGS")+" -buildvcs=false", "GORACE="+promptRace(),
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
}

// goEnv asks for a folder that must not follow HOME; "" without a go tool.
func goEnv(t *testing.T, key string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", key).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// shell runs lines as an operator's shell would, from the top of the checkout,
// and stops at the first that fails.
func shell(t *testing.T, environ []string, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-eux")
	cmd.Dir, cmd.Env, cmd.Stdin = root, environ, strings.NewReader(script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(t, cmd.Run(), "README's commands, in order:\n%s\nprinted:\n%s", errs.String(), out.String())
	return out.String()
}

// readmeCommands gives the lines of README's sh blocks.
func readmeCommands(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, b := range blocks(page(t, "README.md"), "sh") {
		lines = append(lines, b.lines...)
	}
	require.Contains(t, lines, drillCommand)
	require.Contains(t, lines, testCommand)
	return lines
}

// TestOperatorCommandsRunAsWritten: what the pages for operators show as commands works in an empty home, page by page.
func TestOperatorCommandsRunAsWritten(t *testing.T) {
	t.Parallel()
	for name, words := range map[string][]string{
		"docs/FIRST-HOUR.md": {"demo", "Facts", "MEMORY", "SBX_SANDBOX_ID=", "verified local/", "done", "exit code 0", "built", "will not publish", "gone", "stopped"},
		"docs/CLEANUP.md":    {"owned: {labels: {team: agents}}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			for _, b := range blocks(page(t, name), "sh") {
				lines = append(lines, b.lines...)
			}
			out := shell(t, home(t), strings.Join(lines, "\n"))
			for _, word := range words {
				assert.Contains(t, out, word)
			}
		})
	}
}

// TestReadmeIncidentIsPlayed: the commands of somebody who was paged are those that a script plays on the same fleet.
func TestReadmeIncidentIsPlayed(t *testing.T) {
	t.Parallel()
	played := page(t, "internal/cli/testdata/script/paged.txtar")
	shown := 0
	for _, b := range blocks(page(t, "README.md"), "console") {
		for _, line := range b.lines {
			if command, isCommand := strings.CutPrefix(line, "$ "); isCommand {
				command = regexp.MustCompile(`\b[a-z0-9]+/[a-z0-9]+`).ReplaceAllString(command, "$$REF")
				assert.Contains(t, played, command+"\n")
				shown++
			}
		}
	}
	assert.GreaterOrEqual(t, shown, 4)
}

// TestReadmeDrill runs the first command that a newcomer types, and holds the
// transcript to what it prints.
func TestReadmeDrill(t *testing.T) {
	t.Parallel()
	goTool(t)
	require.Contains(t, readmeCommands(t), drillCommand)
	out := plain(shell(t, home(t), drillCommand))
	transcript := blocks(page(t, "README.md"), "text")[0]
	for _, line := range transcript.lines {
		if promised(line, tiertest.IsLong("the steps and verdicts of the drill: they need a share of a core; else its headings, and that it succeeds")) {
			assert.Contains(t, out, plain(line), "README shows a line that the drill does not print")
		}
	}
}

// plain takes out of a line what differs from run to run.
func plain(text string) string {
	text = regexp.MustCompile(`\b(cpu|silence)( wanted)? [0-9.]+(%|s)`).ReplaceAllString(text, "$1 N") // wanted: where others had the core
	text = regexp.MustCompile(`cgroup empty\n|no process of the tree is left\n`).ReplaceAllString(text+"\n", "PROOF\n")
	text = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`).ReplaceAllString(text, "ADDRESS")
	text = regexp.MustCompile(`\bb-[0-9T]+-[a-z0-9]+`).ReplaceAllString(text, "RUN")
	return regexp.MustCompile(` +`).ReplaceAllString(text, " ")
}

// promised says that a line of the transcript holds on every machine: what comes of the drill. On one that gives
// a program the core that it asks for the cases, too, but for the one that a limit ends, and who holds limits.
func promised(line string, calm bool) bool {
	if !calm {
		return regexp.MustCompile(`^(Result|  (left behind|its steps|your fleet) )`).MatchString(line)
	}
	return regexp.MustCompile(`^(Result|  (CASE|busy|hung|silent|orphan|healthy|cases|runbook|its steps|left behind|your fleet) )`).MatchString(line)
}

func TestReadmeTestCommandIsWhatCIRuns(t *testing.T) {
	t.Parallel()
	require.Contains(t, readmeCommands(t), testCommand)
	short := strings.Replace(testCommand, "go test", "retest", 1) + " -short"
	assert.Regexp(t, `(?m)^\t`+regexp.QuoteMeta(short)+`$`, page(t, ".ci/run"))
}

func TestCronLineIsQuietWhenAllIsWell(t *testing.T) {
	t.Parallel()
	environ, count := home(t), 0
	shell(t, environ, "sbx create -- sleep 3600")
	for _, b := range blocks(page(t, "docs/CLEANUP.md"), "crontab") {
		for _, line := range b.lines {
			fields := regexp.MustCompile(`^(?:\S+\s+){5}(.+)$`).FindStringSubmatch(line)
			require.Len(t, fields, 2, line)
			assert.NotContains(t, fields[1], "%", "cron reads a percent sign as the end of the line")
			assert.Empty(t, shell(t, environ, fields[1]))
			assert.Contains(t, shell(t, environ, "SBX_CONFIG=/nonexistent "+fields[1]+" 2>&1 || true"), "error: ", "trouble reaches the mail")
			count++
		}
	}
	assert.Positive(t, count)
}

func TestConfigurationOfThePageIsAccepted(t *testing.T) {
	t.Parallel()
	examples := blocks(page(t, "docs/CONFIGURATION.md"), "yaml")
	require.NotEmpty(t, examples)
	for _, b := range examples {
		file := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(file, []byte(b.text()), 0o600))
		out := shell(t, home(t), "sbx config explain --config '"+file+"'")
		assert.Contains(t, out, "1G")
	}
}

func TestHoldersOfLimitsAreWhatTheCodeSays(t *testing.T) {
	t.Parallel()
	holders := table(page(t, "docs/PROVIDERS.md"), "| `enforcement` |")
	assert.NotEmpty(t, holders)
	for _, row := range holders {
		word := sandbox.Enforcement(strings.Trim(row[0], "`"))
		assert.Equal(t, word.Hard(), row[2] == "by the kernel", word)
	}
}

func TestReadmeFitsATerminal(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, strings.Count(page(t, "README.md"), "\n"), 150)
	for i, line := range strings.Split(page(t, "README.md"), "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), 80, "README.md:%d", i+1)
	}
}
