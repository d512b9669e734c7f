package cli_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// pages are all pages of the checkout, by their names from its top.
func pages(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/cli/*.md", "docs/decisions/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range found {
			name, err := filepath.Rel(root, file)
			require.NoError(t, err)
			names = append(names, filepath.ToSlash(name))
		}
	}
	require.Contains(t, names, "README.md")
	require.Contains(t, names, "docs/cli/sbx_ls.md")
	return names
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
	for _, name := range pages(t) {
		for _, match := range link.FindAllStringSubmatch(prose(page(t, name)), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(root, filepath.Dir(name), match[1]))
			assert.NoError(t, err, name)
		}
	}
}

// TestPagesNameOnlyWhatExists finds commands and flags that a page speaks of
// and the program does not have.
func TestPagesNameOnlyWhatExists(t *testing.T) {
	t.Parallel()
	verbs, flags := map[string]bool{"help": true}, map[string]bool{}
	forEach(tree(), func(c *cobra.Command) {
		verbs[c.Name()] = true
		for _, alias := range c.Aliases {
			verbs[alias] = true
		}
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	})
	verbs["count"] = true // what the guide to a command adds
	for _, name := range pages(t) {
		for _, command := range quotedCommands(page(t, name)) {
			words := strings.Fields(command)
			if words[0] == "sbx" && len(words) > 1 && regexp.MustCompile(`^[a-z]`).MatchString(words[1]) {
				assert.True(t, verbs[words[1]], "%s: there is no %q", name, command)
			}
			own, _, _ := strings.Cut(command, " -- ")
			for _, flag := range regexp.MustCompile(`(?:^| )--([a-z][a-z-]+)`).FindAllStringSubmatch(own, -1) {
				assert.True(t, flags[flag[1]], "%s: there is no --%s: %q", name, flag[1], command)
			}
		}
	}
}

// quotedCommands are the commands in a page's code, in running text and in
// blocks, and the flags that stand alone.
func quotedCommands(text string) []string {
	var found []string
	for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(prose(text), -1) {
		if strings.HasPrefix(quoted[1], "sbx ") || strings.HasPrefix(quoted[1], "--") {
			found = append(found, quoted[1])
		}
	}
	call := regexp.MustCompile(`(?:^|[ (|])(sbx [^|)#]*)`)
	for _, language := range []string{"sh", "crontab", ""} {
		for _, b := range blocks(text, language) {
			if language == "" && b.language != "" {
				continue
			}
			for _, line := range b.lines {
				for _, match := range call.FindAllStringSubmatch(line, -1) {
					found = append(found, match[1])
				}
			}
		}
	}
	return found
}

// TestGlossaryHasEveryWord finds words of the closed lists that the glossary
// does not explain. The lists are the string constants of the types below.
func TestGlossaryHasEveryWord(t *testing.T) {
	t.Parallel()
	glossary := page(t, "docs/GLOSSARY.md")
	for room, types := range map[string]string{
		"sandbox":   "State Outcome Class Cause Confidence Enforcement AgeSource Verdict",
		"fault":     "Kind",
		"triage":    "Reason UsagePattern Severity",
		"cleanup":   "KeepReason",
		"reconcile": "Class Cause Action",
		"cron":      "Layer",
	} {
		for name, words := range constants(t, room) {
			if !slices.Contains(strings.Fields(types), name) {
				continue
			}
			types = strings.Join(slices.DeleteFunc(strings.Fields(types), func(n string) bool { return n == name }), " ")
			for _, word := range words {
				assert.True(t, word == "" || strings.Contains(glossary, "`"+word+"`") || strings.Contains(glossary, "`\""+word+"\"`"),
					"docs/GLOSSARY.md does not explain %s %q", name, word)
			}
		}
		assert.Empty(t, types, "room %s has no such constants", room)
	}
}

// TestGlossaryHasTheNameOfEachCause, as every surface shows it.
func TestGlossaryHasTheNameOfEachCause(t *testing.T) {
	t.Parallel()
	glossary := page(t, "docs/GLOSSARY.md")
	for _, c := range sandbox.Causes() {
		assert.Contains(t, glossary, fmt.Sprintf("| `%s` | %s | ", c, c.Label()))
	}
}

// constants gives the string constants of a room by the name of their type.
func constants(t *testing.T, room string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "internal", room, "*.go"))
	require.NoError(t, err)
	found := map[string][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, named := spec.Type.(*ast.Ident)
			value, literal := spec.Values[0].(*ast.BasicLit)
			if named && literal && value.Kind == token.STRING {
				word, err := strconv.Unquote(value.Value)
				require.NoError(t, err)
				found[kind.Name] = append(found[kind.Name], word)
			}
			return true
		})
	}
	return found
}

func TestQuotedCommandsAreFound(t *testing.T) {
	t.Parallel()
	text := "see `sbx ls --stuck`, `--yes` and `other`\n```sh\nref=$(sbx create -- x)\na | sbx terminate --delete -\n```\n```go\nsbx nothing\n```\n"
	assert.Equal(t, []string{"sbx ls --stuck", "--yes", "sbx create -- x", "sbx terminate --delete -"}, quotedCommands(text))
}

// TestTheIndexNamesEveryPage of docs, for operators or for developers.
func TestTheIndexNamesEveryPage(t *testing.T) {
	t.Parallel()
	index := page(t, "docs/README.md")
	for _, name := range pages(t) {
		if file, inDocs := strings.CutPrefix(name, "docs/"); inDocs && !strings.Contains(file, "/") && file != "README.md" {
			assert.Contains(t, index, "]("+file+")", name)
		}
	}
}
