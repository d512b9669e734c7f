package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// block is one fenced block of a page.
type block struct {
	language string
	title    string // the words behind the language
	lines    []string
	line     int // where its first line stands
}

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// page reads a file of the checkout.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// blocks gives the fenced blocks of a page, of one language or, with "", all.
func blocks(text, language string) []block {
	var found []block
	var open *block
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open == nil && isFence:
			language, title, _ := strings.Cut(fence, " ")
			open = &block{language: language, title: title, line: i + 2}
		case isFence:
			if language == "" || open.language == language {
				found = append(found, *open)
			}
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		}
	}
	return found
}

// prose is a page without its fenced blocks.
func prose(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(text, "")
}

// table gives the rows below the heading row of the first table whose heading
// row holds the given words.
func table(text, heading string) [][]string {
	var rows [][]string
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			if inside {
				return rows
			}
		case inside && !strings.HasPrefix(line, "|-"):
			cells := strings.Split(strings.Trim(line, "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		case strings.Contains(line, heading):
			inside = true
		}
	}
	return rows
}

func TestBlocksAndTablesAreFound(t *testing.T) {
	t.Parallel()
	text := "a `sbx ls`\n```sh a/b\none\ntwo\n```\nb\n```text\n| no |\n```\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n| z |\n"
	require.Equal(t, []block{{"sh", "a/b", []string{"one", "two"}, 3}}, blocks(text, "sh"))
	require.Len(t, blocks(text, ""), 2)
	require.NotContains(t, prose(text), "one")
	require.Contains(t, prose(text), "`sbx ls`")
	require.Equal(t, [][]string{{"1", "2"}}, table(text, "| x |"))
}
