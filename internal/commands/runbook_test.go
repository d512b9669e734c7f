package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRunbookLinesAreHeldAgainstTheTree: each line that a runbook names is one that sbx understands.
func TestRunbookLinesAreHeldAgainstTheTree(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	d := b.deps(t)
	found, books, err := d.lintRunbooks(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.Equal(t, 7, books)
	check := d.lineChecker()
	for line, want := range map[string]string{
		"sbx cleanup --stuk":               "unknown flag: --stuk",
		"sbx clenup --stuck":               "unknown command",
		"sbx runbook launch x":             "unknown command",
		"sbx terminate":                    "no REF",
		"sbx run --file x --parallel -- a": "parallel",
		"sbx cleanup --where 'a b' --ye":   "unknown flag: --ye",
		"sbx cron":                         "it takes a command",
		"sbx ls surplus":                   "surplus",
	} {
		err := check(line)
		if assert.Error(t, err, line) {
			assert.Contains(t, err.Error(), want, line)
		}
	}
}

// TestRunbookOfYourOwn: a new one is found, is clean, replaces a shipped one of its id, and is never
// written over.
func TestRunbookOfYourOwn(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	r := b.run(t, "runbook new slow-agents --alert AgentLatencyHigh -o json")
	require.Equal(t, 0, r.code, r.stderr)
	item, _ := r.object(t)["item"].(map[string]any)
	path, _ := item["path"].(string)
	assert.Equal(t, filepath.Join(b.home, ".config", "sbx", "runbooks", "slow-agents.yaml"), path)
	assert.Equal(t, 11, b.run(t, "runbook new slow-agents").code)
	assert.Equal(t, 0, b.run(t, "runbook lint").code)
	assert.Equal(t, 0, b.run(t, "runbook lint "+path).code)
	assert.Contains(t, b.run(t, "runbook ls").stdout, "slow-agents")

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	write := func(name, content string) string {
		file := filepath.Join(filepath.Dir(path), name)
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	own := strings.NewReplacer("id: slow-agents", "id: state-drift", "Slow agents", "Ours").Replace(string(text))
	write("drift.yaml", own)
	assert.Contains(t, b.run(t, "runbook show state-drift").stdout, "OURS")

	broken := write("broken.yaml", strings.Replace(string(text), "owner:", "ownr:", 1))
	r = b.run(t, "runbook lint "+broken)
	assert.Equal(t, 10, r.code)
	assert.Contains(t, r.stderr, "broken.yaml:6:3: unknown key \"ownr\"\nsbx:     ownr: my team\nsbx:     ^^^^\nsbx: hint: did you mean owner?")
	assert.Equal(t, 3, b.run(t, "runbook ls").code, "the others are listed")
	assert.Equal(t, 5, b.run(t, "runbook show nosuch").code)
	assert.Equal(t, 2, b.run(t, "runbook show --file "+broken).code)
}

// TestLintReportsAllMistakesAtOnce, each with its place; times that do not add up are a warning.
func TestLintReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	text := b.run(t, "runbook new mine --out -").stdout
	lint := func(changes ...string) (r result, places []string) {
		file := filepath.Join(t.TempDir(), "mine.yaml")
		require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(changes...).Replace(text)), 0o600))
		r = b.run(t, "runbook lint "+file+" -o json")
		for _, row := range r.list(t, "items") {
			places = append(places, fmt.Sprint(row["line"], ":", row["column"], " ", row["severity"], " ", row["rule"]))
		}
		return r, places
	}
	r, places := lint("owner:", "ownr:", "      ask:", "      act:", "verify.active_normal", "verify.active_normal > 3", "title: Mitigate\n", "title: Mitigate\n      steeps: []\n")
	assert.Equal(t, 10, r.code)
	assert.Equal(t, []string{"4:3 error syntax", "6:3 error syntax", "20:12 error syntax", "26:7 error syntax", "43:7 error syntax", "44:37 error expression"}, places)
	r, places = lint("eta: 7m", "eta: 9m")
	assert.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, []string{"9:8 warning eta-sum"}, places)
	assert.Contains(t, r.stdout, "the steps take 7m, not 9m")
}

// TestANewRunbookReplacesNothing: the id of a shipped one and an alert of another are refused, a copy is
// not, and lint warns of alerts that lead nowhere.
func TestANewRunbookReplacesNothing(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	folder := filepath.Join(b.home, ".config", "sbx", "runbooks")
	r := b.run(t, "runbook new sandbox-stuck")
	assert.Equal(t, 11, r.code)
	assert.Contains(t, r.stderr, "sbx runbook new sandbox-stuck --copy")
	r = b.run(t, "runbook new mine --alert sandbox_leak_detected")
	assert.Equal(t, 11, r.code)
	assert.Contains(t, r.stderr, "the alert sandbox_leak_detected leads to the runbook sandbox-stuck already")
	assert.NoDirExists(t, folder)
	assert.Equal(t, 5, b.run(t, "runbook new nosuch --copy").code)
	assert.Equal(t, 2, b.run(t, "runbook new sandbox-stuck --copy --alert x").code)

	require.Equal(t, 0, b.run(t, "runbook new sandbox-stuck --copy").code)
	path := filepath.Join(folder, "sandbox-stuck.yaml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	r = b.run(t, "runbook lint")
	assert.Equal(t, 0, r.code)
	assert.NotContains(t, r.stdout+r.stderr, "no-runbook")
	b.run(t, "runbook new ours --alert AgentSlow")
	r = b.run(t, "runbook new theirs --alert AgentSlow")
	assert.Equal(t, 11, r.code)
	assert.Contains(t, r.stderr, "take it out of "+filepath.Join(folder, "ours.yaml"))

	start := strings.Index(string(text), "  alerts:")
	end := start + strings.Index(string(text)[start:], "\n")
	require.NoError(t, os.WriteFile(path, []byte(string(text)[:start]+"  alerts: [sandbox_leak_detected]"+string(text)[end:]), 0o600))
	for _, line := range []string{"runbook lint", "runbook lint " + path} {
		r = b.run(t, line+" -o json")
		assert.Equal(t, 0, r.code, "a warning")
		assert.Contains(t, r.stdout, "it replaces the shipped sandbox-stuck, and its alerts lead to no runbook: ")
		assert.Contains(t, r.stdout, `"no-runbook"`)
	}
}
