package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// endingMethods are the methods that end a sandbox at a fleet or at a provider, whatever
// the value is called that has them. RemoveRecord is one: at MonoTask it sends the request that ends a sandbox.
func endingMethods() []string { return []string{"Terminate", "ProviderCleanup", "RemoveRecord"} }

// door are the functions that may use an ending method, each with its reason. Everything
// else ends sandboxes through safety.End.
func door() map[string]string {
	return map[string]string{
		"internal/safety/end.go End":                       "the door itself",
		"internal/safety/end.go Verify":                    "asks nothing: it looks for an end that somebody else has asked for",
		"internal/fleet/endrun.go sendTerminate":           "the fleet asks the provider, for the door",
		"internal/cleanup/provider.go RunProviderCleanup":  "a provider's own cleanup, which knows no single sandbox; anything protected in the profile refuses it",
		"internal/fleet/control.go RemoveRecord":           "the fleet asks the provider, for reconcile",
		"internal/reconcile/source.go removeGhost":         "the record of a sandbox that its provider lists and does not find",
		"internal/providers/wirekit/wirekit.go UndoCreate": "the undo of a create whose program could not be started",
		"internal/providers/local/tied.go removeTied":      "local's removal of what is tied to a process that is gone",
		"internal/providers/local/sweep.go sweepOne":       "local's sweep of a sandbox whose supervisor is dead or whose time to live is over",
		"internal/testkit/providertest":                    "the conformance suite: tests alone",
		"internal/testkit/wiretest":                        "what the strict wire fakes are tested with: tests alone",
	}
}

// TestSandboxesEndThroughTheDoor finds by syntax who ends a sandbox. A method is told by
// its name alone, called or taken as a value, so that no name of a variable hides it.
func TestSandboxesEndThroughTheDoor(t *testing.T) {
	t.Parallel()
	found, used, err := endings(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
	for exception := range door() {
		if !used[exception] {
			t.Errorf("%s is an exception of the door and ends nothing: take it out", exception)
		}
	}
}

func TestPlantedEndingsAreFound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source string
		found  int
	}{
		"a fleet":             {"func f(f *fleet.Fleet) { f.Terminate(nil, nil, o) }", 1},
		"under another name":  {"func f(ops *fleet.Fleet) { ops.Terminate(nil, nil, o) }", 1},
		"a field":             {"func f(r *run) { r.d.Fleet.Terminate(nil, nil, o) }", 1},
		"a method value":      {"func f(f *fleet.Fleet) { end := f.Terminate; end(nil, nil, o) }", 1},
		"a method expression": {"func f(f *fleet.Fleet) { (*fleet.Fleet).Terminate(f, nil, nil, o) }", 1},
		"what a call gives":   {"func f() { open().Terminate(nil, nil, o) }", 1},
		"in a literal":        {"var end = func(p providers.Provider) error { return p.Terminate(nil, id, o) }", 1},
		"a provider's own":    {"func f(f *fleet.Fleet) { f.ProviderCleanup(nil, id, true) }", 1},
		"like an import":      {"import \"sbx/internal/ops\"\n\nfunc f(x *fleet.Fleet) { ops := x; ops.Terminate(nil, nil, o) }", 1},
		"an argument like it": {"import \"sbx/internal/ops\"\n\nfunc f(ops *fleet.Fleet) { ops.Terminate(nil, nil, o) }", 1},
		"a dot import":        {"import . \"sbx/internal/fleet\"\n\nfunc f(f *Fleet) { f.Terminate(nil, nil, o) }", 1},
		"a package's":         {"import \"sbx/internal/ops\"\n\nfunc f() { ops.Terminate(nil, o) }", 0},
		"a renamed package's": {"import verbs \"sbx/internal/ops\"\n\nfunc f() { verbs.Terminate(nil, o) }", 0},
		"through the door":    {"func f(f *fleet.Fleet) { safety.End(nil, f, nil, o) }", 0},
		"a method of its own": {"func (c *Client) Terminate() error { return nil }", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			file := filepath.Join(root, "internal", "cleanup", "provider.go") // an exception holds for one function
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("package cleanup\n\n"+tc.source+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			found, _, err := endings(root)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != tc.found {
				t.Fatalf("want %d violations, got %q", tc.found, found)
			}
		})
	}
}

// endings lists the uses of ending methods outside of tests that are no exception, and
// which exceptions are used.
func endings(root string) (found []string, used map[string]bool, err error) {
	used = map[string]bool{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && file != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "tools" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		for _, use := range uses(parsed) {
			if at, ok := excepted(rel, use.function); ok {
				used[at] = true
				continue
			}
			found = append(found, fmt.Sprintf("%s:%d: %s ends a sandbox by .%s: go through safety.End", rel, fset.Position(use.pos).Line, use.function, use.method))
		}
		return nil
	})
	return found, used, err
}

func excepted(rel, function string) (string, bool) {
	for _, at := range []string{rel + " " + function, path.Dir(rel)} {
		if _, ok := door()[at]; ok {
			return at, true
		}
	}
	return "", false
}

// use is one use of an ending method.
type use struct {
	function, method string
	pos              token.Pos
}

func uses(file *ast.File) []use {
	packages := packagesOf(file)
	var found []use
	for _, decl := range file.Decls {
		function := "a variable"
		if f, ok := decl.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(endingMethods(), s.Sel.Name) {
				return true
			}
			if x, ok := s.X.(*ast.Ident); !ok || !packages[x.Name] {
				found = append(found, use{function, s.Sel.Name, s.Pos()})
			}
			return true
		})
	}
	return found
}

// packagesOf are the names under which a file imports packages, without those that it
// also gives to anything of its own: then nobody can tell by the name which of them is
// meant.
func packagesOf(file *ast.File) map[string]bool {
	packages := map[string]bool{}
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = true
	}
	forget := func(names ...*ast.Ident) {
		for _, n := range names {
			delete(packages, n.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			forget(n.Names...)
		case *ast.ValueSpec:
			forget(n.Names...)
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok {
					forget(id)
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok {
					forget(id)
				}
			}
		}
		return true
	})
	return packages
}
