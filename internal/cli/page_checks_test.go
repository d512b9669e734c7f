//go:build unix

package cli_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestConfigurationsOfPagesAreAccepted: each block of a configuration, as the whole file.
func TestConfigurationsOfPagesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docs/ALERTS.md", "docs/CONFIGURATION.md", "docs/DOCKER.md", "docs/INSTALL.md"} {
		for _, b := range blocks(page(t, name), "yaml") {
			if strings.HasPrefix(b.text(), "rule_files") { // Prometheus's
				continue
			}
			file := filepath.Join(t.TempDir(), "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte(b.text()), 0o600))
			out := shell(t, home(t), "sbx config explain --config '"+file+"'")
			assert.Contains(t, out, file, "%s:%d", name, b.line)
		}
	}
}

// TestRulesOfThePageAreThere: the file that Prometheus is told to read is packed.
func TestRulesOfThePageAreThere(t *testing.T) {
	t.Parallel()
	for _, b := range blocks(page(t, "docs/INSTALL.md"), "yaml") {
		if path := regexp.MustCompile(`rule_files: \[(\S+)\]`).FindStringSubmatch(b.text()); path != nil {
			assert.Contains(t, page(t, ".goreleaser.yaml"), "dst: "+path[1]+",")
			return
		}
	}
	t.Error("the block was not found")
}

// TestFloorsOfThePageAreRooms: the drawing names rooms, and each room of one word.
func TestFloorsOfThePageAreRooms(t *testing.T) {
	t.Parallel()
	drawn := map[string]bool{}
	for word := range strings.FieldsSeq(strings.ReplaceAll(blocks(page(t, "docs/ARCHITECTURE.md"), "")[0].text(), "providers/*", "")) {
		drawn[word] = true
		path := filepath.Join(root, "internal", word)
		if word == "cmd/sbx" {
			path = filepath.Join(root, word)
		}
		info, err := os.Stat(path)
		assert.True(t, err == nil && info.IsDir(), word)
	}
	rooms, err := os.ReadDir(filepath.Join(root, "internal"))
	require.NoError(t, err)
	outside := "arch faults documents testkit" // only tests
	for _, room := range rooms {
		if !strings.Contains(outside, room.Name()) {
			assert.True(t, drawn[room.Name()], "%s is on no floor", room.Name())
		}
	}
}

// TestActsOfThePageAreFunctions: each name with its room that the drawing of acts has is declared there.
func TestActsOfThePageAreFunctions(t *testing.T) {
	t.Parallel()
	folders := map[string]string{"ops": "ops", "end": "ops/end", "launch": "ops/launch", "safety": "safety", "commands": "commands"}
	names := regexp.MustCompile(`\b(ops|end|launch|safety|commands)\.(\w+)`).FindAllStringSubmatch(blocks(page(t, "docs/ARCHITECTURE.md"), "")[1].text(), -1)
	require.Greater(t, len(names), 5)
	for _, name := range names {
		files, err := filepath.Glob(filepath.Join(root, "internal", folders[name[1]], "*.go"))
		require.NoError(t, err)
		declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type )` + name[2] + `\b`)
		assert.True(t, slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && declared.Match(text)
		}), name[0])
	}
}

// TestTheEntryOfAnAssistantStartsTheServer: it is JSON, and its arguments are a command.
func TestTheEntryOfAnAssistantStartsTheServer(t *testing.T) {
	t.Parallel()
	var entry map[string]map[string]map[string]any
	require.NoError(t, json.Unmarshal([]byte(blocks(page(t, "docs/ASSISTANTS.md"), "json")[0].text()), &entry))
	server := entry["mcpServers"]["sbx"]
	var args []string
	for _, arg := range server["args"].([]any) { //nolint:forcetypeassert,errcheck // else the page is wrong
		args = append(args, arg.(string)) //nolint:forcetypeassert,errcheck // as above
	}
	cmd, rest, err := tree().Find(args)
	require.NoError(t, err)
	assert.Equal(t, "sbx", server["command"])
	assert.Equal(t, "mcp", cmd.Name())
	assert.Empty(t, rest)
}

// TestEventOfThePageIsRead as one whole event.
func TestEventOfThePageIsRead(t *testing.T) {
	t.Parallel()
	event := strings.TrimSpace(blocks(page(t, "docs/EVENTS.md"), "json")[0].text())
	out := shell(t, home(t), "echo '"+event+"' | sbx events - -o json")
	assert.Contains(t, out, `"tool": "Bash"`)
	assert.Contains(t, out, `"skipped_lines": 0`)
}

// TestFileOfTasksOfThePageIsRead strictly, by a run that ends before a task is launched.
func TestFileOfTasksOfThePageIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := blocks(page(t, "docs/TASKS.md"), "yaml")[0].text()
	run := func(text string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "tasks.yaml"), []byte(text), 0o600))
		return shell(t, home(t), "API_TOKEN=x sbx run --file '"+dir+"/tasks.yaml' --memory-budget 1M 2>&1 || true")
	}
	assert.Contains(t, run(text), "budget")
	assert.Contains(t, run(text+"surprise: 1\n"), "surprise", "planted")
}

// TestMakeHasTheVerbsOfThePage: each line of the page is a verb of the Makefile.
func TestMakeHasTheVerbsOfThePage(t *testing.T) {
	t.Parallel()
	verbs, named := page(t, "Makefile"), 0
	for _, line := range blocks(page(t, "CONTRIBUTING.md"), "sh")[0].lines {
		if m := regexp.MustCompile(`^make ([a-z]+)`).FindStringSubmatch(line); m != nil {
			assert.Regexp(t, `(?m)^`+m[1]+`:`, verbs, line)
			named++
		}
	}
	assert.Greater(t, named, 5)
}

// TestCodeOfThePageIsInTheSource: the line that a guide shows stands in a room.
func TestCodeOfThePageIsInTheSource(t *testing.T) {
	t.Parallel()
	for _, b := range blocks(page(t, "docs/ADDING-A-PROVIDER.md"), "text") {
		for _, line := range b.lines {
			words := strings.Fields(strings.TrimPrefix(line, "var ")) // gofmt aligns them
			found := false
			require.NoError(t, filepath.WalkDir(filepath.Join(root, "internal", "providers"), func(path string, _ fs.DirEntry, err error) error {
				if err != nil || !strings.HasSuffix(path, ".go") {
					return err
				}
				raw, err := os.ReadFile(path)
				found = found || strings.Contains(strings.Join(strings.Fields(string(raw)), " "), strings.Join(words, " "))
				return err
			}))
			assert.True(t, found, line)
		}
	}
}
