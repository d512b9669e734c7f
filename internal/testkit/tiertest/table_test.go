package tiertest_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated table instead of comparing it")

const (
	root        = "../../.."
	tableBegins = "<!-- begin: what is left out, written by `make docs` -->"
	tableEnds   = "<!-- end: what is left out -->"
)

// left is a row of the table: a test that a run leaves out.
type left struct{ where, test, run, why string }

// TestGeneratedTableOfTiers compares the table of docs/TESTING.md with the reasons in the source.
func TestGeneratedTableOfTiers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(root, "docs", "TESTING.md")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(raw), tableBegins)
	_, tail, ends := strings.Cut(rest, tableEnds)
	require.True(t, found && ends, "docs/TESTING.md has no place for the table")
	want := head + tableBegins + "\n\n" + table(t) + "\n" + tableEnds + tail
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		return
	}
	assert.Equal(t, want, string(raw), "run `make docs`")
}

// TestOnlyThisRoomChoosesTheRun: a test that asks for itself would have no line in the table.
func TestOnlyThisRoomChoosesTheRun(t *testing.T) {
	t.Parallel()
	eachSource(t, func(name, text string) {
		for _, direct := range []string{"testing.Short()", `"SBX_TEST_LONG"`} {
			assert.NotContains(t, text, direct, "%s: call tiertest instead", name)
		}
	})
}

func table(t *testing.T) string {
	t.Helper()
	rows := append(inSource(t), inScripts(t)...)
	slices.SortFunc(rows, func(a, b left) int {
		return strings.Compare(a.run+a.where+a.test+a.why, b.run+b.where+b.test+b.why)
	})
	var b strings.Builder
	b.WriteString("| left out of | room | test | why |\n|---|---|---|---|\n")
	for _, r := range slices.Compact(rows) {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", r.run, r.where, r.test, r.why)
	}
	return b.String()
}

// runs are the runs that leave a test out, by the function that says so.
func runs() map[string]string {
	return map[string]string{"SkipShort": "gate", "SkipUnlessLong": "gate, README", "IsLong": "gate, README (some cases)"}
}

// inSource finds the calls of this room.
func inSource(t *testing.T) []left {
	t.Helper()
	var rows []left
	eachSource(t, func(name, text string) {
		if !strings.Contains(text, "tiertest.") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				run := runs()[calledOfTiertest(call)]
				if run == "" {
					return true
				}
				literal, ok := call.Args[len(call.Args)-1].(*ast.BasicLit)
				require.True(t, ok, "%s: %s gives a reason that is no literal", name, f.Name.Name)
				why, err := strconv.Unquote(literal.Value)
				require.NoError(t, err)
				rows = append(rows, row(t, left{strings.TrimPrefix(filepath.Dir(name), "internal/"), f.Name.Name, run, why}))
				return true
			})
		}
	})
	return rows
}

func calledOfTiertest(call *ast.CallExpr) string {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if room, ok := selector.X.(*ast.Ident); !ok || room.Name != "tiertest" {
		return ""
	}
	return selector.Sel.Name
}

// inScripts finds the scripts, and parts of scripts, that begin with a skip.
func inScripts(t *testing.T) []left {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "internal/cli/testdata/*/*.txtar"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	skip := regexp.MustCompile(`(?m)^\[(short|!long)\] skip(?: '([^']*)')?`)
	var rows []left
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range skip.FindAllStringSubmatch(string(raw), -1) {
			run := map[string]string{"short": "gate", "!long": "gate, README"}[m[1]]
			rows = append(rows, row(t, left{"cli", scriptTest(file) + strings.TrimSuffix(filepath.Base(file), ".txtar"), run, m[2]}))
		}
	}
	return rows
}

// row is r, whose reason is one that the table can show.
func row(t *testing.T, r left) left {
	t.Helper()
	assert.Regexp(t, `^[^|\n]{10,140}$`, r.why, "%s %s: the reason is one line", r.where, r.test)
	return r
}

// eachSource reads each Go file of the rooms but those of this one.
func eachSource(t *testing.T, read func(name, text string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "internal"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == "tiertest") {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if filepath.Ext(file) != ".go" {
			return nil
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		read(filepath.ToSlash(name), string(raw))
		return err
	}))
}

// scriptTest is the test that plays a script.
func scriptTest(file string) string {
	if filepath.Base(filepath.Dir(file)) == "remote" {
		return "TestTaskLives/*/"
	}
	return "TestScripts/"
}
