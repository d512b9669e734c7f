package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPagesNameOnlySourcesThatExist finds files, rooms and tests of this checkout that a page
// speaks of and that have moved or are gone.
func TestPagesNameOnlySourcesThatExist(t *testing.T) {
	t.Parallel()
	known := sources(t)
	for _, name := range pages(t) {
		for _, gone := range unknownSources(page(t, name), known) {
			assert.Failf(t, "there is no such source", "%s names %s", name, gone)
		}
	}
}

func TestSourcesThatAreGoneAreFound(t *testing.T) {
	t.Parallel()
	known := []string{"internal/ops/stop.go", "internal/ops", "TestStop"}
	text := "see `ops/stop.go`, `internal/ops`, `internal/ops/stop.go:12`, `TestStop` and `launch.Stop`, and `ops/gone.go`, `top.go`, `internal/gone/`, `TestGone`, `TestGone/sub`\n" +
		"```go internal/new/new.go\n// `internal/new` is made by a guide\n```\n"
	assert.Equal(t, []string{"ops/gone.go", "top.go", "internal/gone", "TestGone", "TestGone"}, unknownSources(text, known))
}

// unknownSources are the sources that the prose of a page names in code spans and that are
// not known. A file is known by the end of its path.
func unknownSources(text string, known []string) []string {
	var gone []string
	for _, match := range regexp.MustCompile("`((?:[a-z0-9_.-]+/)*[a-z0-9_]+\\.go|(?:internal|cmd|tools)/[a-z0-9_/.-]+|(?:Test|Fuzz|Benchmark)[A-Z]\\w+)[^`]*`").FindAllStringSubmatch(prose(text), -1) {
		word := strings.TrimRight(match[1], "/.")
		if !slices.ContainsFunc(known, func(one string) bool { return one == word || strings.HasSuffix(one, "/"+word) }) {
			gone = append(gone, word)
		}
	}
	return gone
}

// sources are the files and folders of the checkout, and the functions of its tests.
func sources(t *testing.T) []string {
	t.Helper()
	var known []string
	for _, top := range []string{"internal", "cmd", "tools", "completions"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			known = append(known, filepath.ToSlash(rel))
			if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
					known = append(known, f.Name.Name)
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
	return known
}
