package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// operationsOnly are the fields of ops.Env by which providers, stores and journals are
// reached, without the words that results use too. Operations use them; a skin shows what
// an operation gives.
func operationsOnly() []string {
	return []string{"Fleet", "Only", "Store", "Journals", "Shared", "Notifier", "Control", "Background"}
}

// TestVerbsReachNothingButOperations: what a verb asks by itself, no other skin can ask.
func TestVerbsReachNothingButOperations(t *testing.T) {
	t.Parallel()
	found, err := reachedByVerbs(filepath.Join("..", "commands"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestPlantedReachesOfVerbsAreFound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source string
		found  int
	}{
		"a fleet":              {"func f(d *Deps) { d.Fleet(ctx) }", 1},
		"a store of an env":    {"func f(d *Deps) { d.Env.Store(false) }", 1},
		"a field as a value":   {"func f(d *Deps) { open := d.Only; open(ctx) }", 1},
		"under another name":   {"func f(ops *Deps) { ops.Journals() }", 1},
		"a type":               {"import \"sbx/internal/fleet\"\n\nfunc f(fl *fleet.Fleet) {}", 0},
		"an operation":         {"import \"sbx/internal/ops\"\n\nfunc f(d *Deps) { ops.List(ctx, d.Env) }", 0},
		"a field of its own":   {"type x struct{ Fleet int }", 0},
		"a local of that name": {"func f() { Store := 1; _ = Store }", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "x.go"), []byte("package commands\n\n"+tc.source+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			found, err := reachedByVerbs(folder)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != tc.found {
				t.Fatalf("want %d violations, got %q", tc.found, found)
			}
		})
	}
}

// reachedByVerbs lists the uses of such fields in the files of a folder that are no tests.
func reachedByVerbs(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(operationsOnly(), s.Sel.Name) {
				return true
			}
			if x, plain := s.X.(*ast.Ident); plain && imports(parsed, x.Name) {
				return true
			}
			found = append(found, fmt.Sprintf("%s: a verb uses .%s: call an operation of ops", fset.Position(s.Pos()), s.Sel.Name))
			return true
		})
	}
	return found, nil
}

// imports says that a file imports a room by this name.
func imports(file *ast.File, name string) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return strings.HasSuffix(strings.Trim(i.Path.Value, `"`), "/"+name)
	})
}
