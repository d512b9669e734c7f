package cli_test

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cli"
	"sbx/internal/commands"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/process"
	"sbx/internal/runbook"
	"sbx/internal/views"
	"sbx/runbooks"
)

var update = flag.Bool("update", false, "write the generated files instead of comparing them")

// root is the top of the checkout, seen from this room.
const root = "../.."

// TestGeneratedFilesAreCurrent compares what is made from the program with
// what is committed, and finds files that nothing makes any more.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	addCompletions(t, want)
	addManual(t, want)
	addReference(t, want)
	want["docs/REFERENCE.md"] = referencePage()
	want["docs/ALERTS.md"] = alertsPage()
	want["docs/TASKS.md"] = withPart(t, "docs/TASKS.md", "settings of task launch", launchSettings())
	want["docs/PROVIDERS.md"] = withPart(t, "docs/PROVIDERS.md", "types of providers", typesOfProviders(t))
	addRunbooks(t, want)
	addDeployment(t, want)
	if *update {
		write(t, want)
		return
	}
	for name, text := range want {
		have, err := os.ReadFile(filepath.Join(root, name))
		if assert.NoError(t, err, "run `make docs`") {
			assert.Equal(t, text, string(have), "%s is not what the program says: run `make docs`", name)
		}
	}
	for _, name := range stale(t, want) {
		assert.Failf(t, "stale file", "nothing generates %s: run `make docs`", name)
	}
}

// withPart is a page with this text between the two marks that name the part; the rest is written by hand.
func withPart(t *testing.T, name, part, text string) string {
	t.Helper()
	begin, end := "<!-- begin: "+part+", written by `make docs` -->\n", "<!-- end: "+part+" -->\n"
	head, rest, begins := strings.Cut(page(t, name), begin)
	_, tail, ends := strings.Cut(rest, end)
	require.True(t, begins && ends, "%s has no place for the %s", name, part)
	return head + begin + "\n" + text + "\n" + end + tail
}

// generatedFolders hold generated files only.
func generatedFolders() []string { return []string{"completions", "man", "docs/cli", "deploy/systemd"} }

func stale(t *testing.T, want map[string]string) []string {
	t.Helper()
	names := staleRunbooks(t, want)
	for _, folder := range generatedFolders() {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil && !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		for _, e := range entries {
			if name := path.Join(folder, e.Name()); want[name] == "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func write(t *testing.T, want map[string]string) {
	t.Helper()
	for name, text := range want {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	for _, name := range stale(t, want) {
		require.NoError(t, os.Remove(filepath.Join(root, name)))
	}
}

// addCompletions asks the verb itself, as a packager does.
func addCompletions(t *testing.T, want map[string]string) {
	t.Helper()
	for shell, ending := range map[string]string{"bash": "bash", "zsh": "zsh", "fish": "fish", "powershell": "ps1"} {
		want["completions/sbx."+ending] = printed(t, "completion", shell)
	}
}

// printed is what the program prints without an environment.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(process.Process{
		Args:   append([]string{"sbx"}, args...),
		Stdout: process.Stream{Writer: &out}, Stderr: process.Stream{Writer: &errs},
	}, cli.Types())
	require.Zero(t, code, errs.String())
	return out.String()
}

// tree is the command tree for documents that are made from it and not run.
func tree() *cobra.Command {
	top := commands.NewRoot(&commands.Deps{
		Env: &ops.Env{Process: process.Process{Args: []string{"sbx"}}, Types: cli.Types()}, Globals: &commands.Globals{}, Runbooks: runbooks.Files,
	})
	top.DisableAutoGenTag = true
	forEach(top, func(c *cobra.Command) {
		commands.LayOutHelp(c)
		c.Long = keepColumns(c.Long)
	})
	return top
}

// keepColumns indents the paragraphs that are laid out in columns, so that
// Markdown does not flow them together.
func keepColumns(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if regexp.MustCompile(`\S {2,}\S`).MatchString(p) {
			paragraphs[i] = "    " + strings.ReplaceAll(p, "\n", "\n    ")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// addRunbooks makes the page of each shipped runbook.
func addRunbooks(t *testing.T, want map[string]string) {
	t.Helper()
	catalog, err := runbook.Library{Shipped: runbooks.Files}.Load(t.Context())
	require.NoError(t, err)
	require.Empty(t, catalog.Findings)
	for _, b := range catalog.Books {
		want["runbooks/"+b.PageName()] = views.RunbookMarkdown(b)
	}
}

// TestRunbookPagesNeedNoTool: a page has each part, and thresholds stand on it as numbers.
func TestRunbookPagesNeedNoTool(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	addRunbooks(t, pages)
	for name, page := range pages {
		for _, head := range []string{"Meaning", "Impact", "Diagnosis", "Mitigation", "Verification", "Escalation"} {
			assert.Contains(t, page, "\n## "+head+"\n", name)
		}
		assert.NotContains(t, page, "{{", name)
		assert.NotContains(t, page, "thresholds.", name)
		assert.NotContains(t, page, "0ms", name)
	}
	assert.Contains(t, pages["runbooks/sandbox-stuck.md"], "`stats.active > 20`")
	assert.Contains(t, pages["runbooks/sandbox-stuck.md"], "longer than 10m")
}

// staleRunbooks are pages without a document.
func staleRunbooks(t *testing.T, want map[string]string) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "runbooks", "*.md"))
	require.NoError(t, err)
	var names []string
	for _, page := range pages {
		if name := "runbooks/" + filepath.Base(page); want[name] == "" {
			names = append(names, name)
		}
	}
	return names
}

// addManual makes the manual pages. Their date stands still, so that a page
// changes only when a command does.
func addManual(t *testing.T, want map[string]string) {
	t.Helper()
	top, dir := tree(), t.TempDir()
	spelt := map[*pflag.Flag]bool{}
	forEach(top, func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !spelt[f] {
				spellFlag(f)
			}
			spelt[f] = true
		})
	})
	date := time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, doc.GenManTree(top, &doc.GenManHeader{Section: "1", Date: &date, Source: "sbx", Manual: "sbx manual"}, dir))
	for name, text := range readAll(t, dir) {
		if name == "sbx.1" {
			text = strings.Replace(text, ".SH SEE ALSO", overview(top)+".SH SEE ALSO", 1)
		}
		want["man/"+name] = plainFlags(text)
	}
}

// overview are the sections of sbx(1) that the library does not know.
func overview(top *cobra.Command) string {
	var b strings.Builder
	plain := strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "")
	entry := func(term, text string) {
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", plain.Replace(term), plain.Replace(text))
	}
	b.WriteString(".SH COMMANDS\n")
	for _, c := range top.Commands() {
		if c.IsAvailableCommand() {
			entry(c.Name(), c.Short)
		}
	}
	b.WriteString(".SH EXIT STATUS\n")
	for _, row := range fault.Table() {
		entry(strconv.Itoa(row.Code), row.Meaning)
	}
	b.WriteString(".SH ENVIRONMENT\n")
	for _, v := range config.Variables() {
		entry(v.Name, v.Help)
	}
	for _, kind := range cli.Types() {
		for _, o := range kind.Options {
			if o.Env != "" {
				entry(o.Env, kind.Name+": "+o.Help)
			}
		}
	}
	b.WriteString(".SH FILES\n")
	entry("$XDG_CONFIG_HOME/sbx/config.yaml", "the user's configuration; ~/.config/sbx/config.yaml where the variable is not set")
	entry("$XDG_STATE_HOME/sbx/", "tasks, records of local sandboxes and journals of runs; ~/.local/state/sbx/ where the variable is not set")
	return b.String()
}

func forEach(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		forEach(sub, do)
	}
}

// spellFlag gives a flag its placeholder where the library prints a default,
// and moves a default worth knowing into the text.
func spellFlag(f *pflag.Flag) {
	name, usage := pflag.UnquoteUsage(f)
	if f.NoOptDefVal != "" {
		return
	}
	if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "[]" {
		usage += " (default " + f.DefValue + ")"
	}
	f.DefValue, f.Usage = name, strings.ReplaceAll(usage, "|\n", "|")
}

// plainFlags drops the values of switches and the quotes around placeholders.
func plainFlags(page string) string {
	page = regexp.MustCompile(`(\\fB--[a-z-]+\\fP)\[=[^]]*\]`).ReplaceAllString(page, "$1")
	return regexp.MustCompile(`(\\fB--[a-z-]+\\fP)="([^"]*)"`).ReplaceAllString(page, "$1=$2")
}

// addReference makes one page of Markdown for each command.
func addReference(t *testing.T, want map[string]string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, doc.GenMarkdownTree(tree(), dir))
	for name, text := range readAll(t, dir) {
		want["docs/cli/"+name] = strings.TrimRight(text, "\n") + "\n"
	}
}

func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(os.DirFS(dir), name)
		files[name] = string(text)
		return err
	}))
	require.NotEmpty(t, files)
	return files
}
