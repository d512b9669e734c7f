package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// input is a struct type by whose fields something is judged or joined. Each field of it,
// and of the struct types of its room that it holds, needs a line outside tests that sets
// it: a field that only tests set is a rule that never fires.
type input struct {
	room, name string
	outside    bool // only other rooms count: its own fills in defaults
}

func inputs() []input {
	return []input{{"triage", "Signals", false}, {"fleet", "Options", true}}
}

// seams are the fields that only tests set, on purpose.
func seams() map[string]string {
	return map[string]string{
		"fleet.Options.Poll":   "production takes the default pauses; tests look sooner",
		"fleet.Poll.Min":       "as fleet.Options.Poll",
		"fleet.Poll.Max":       "as fleet.Options.Poll",
		"fleet.Options.Sample": "production takes the default; tests do not wait between two samples",
	}
}

func TestEveryInputHasAProducer(t *testing.T) {
	t.Parallel()
	found, err := unsetFields(filepath.Join("..", ".."), inputs())
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range found {
		if seams()[field] == "" {
			t.Errorf("no line outside tests sets %s: a rule that reads it can never apply", field)
		}
	}
	for field := range seams() {
		if !slices.Contains(found, field) {
			t.Errorf("%s is set outside tests: take it off the list of seams", field)
		}
	}
}

func TestPlantedInputsAreFound(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for file, source := range map[string]string{
		"internal/triage/signals.go": `package triage
			import "time"
			type Signals struct { Keyed, Assigned, Counted, Nowhere, InTests, InAFake bool; At time.Time; Nested []Nested; Book map[string]*Leaf }
			type Nested struct { First, Second int; Never string }
			type Leaf struct { Positional, Too int }
			type Unrelated struct { Nowhere bool }
			func Read() Signals { return Signals{Keyed: true, Book: map[string]*Leaf{"x": {1, 2}}} }`,
		"internal/fleet/fleet.go": `package fleet
			import ("sbx/internal/triage"; clock "time")
			type Options struct { Given, Default int }
			func New(o Options) { if o.Default == 0 { o.Default = 1 } }
			func Observe() triage.Signals {
				s := triage.Read()
				s.Assigned, s.At = true, clock.Now()
				s.Nested = append(s.Nested, triage.Nested{First: 1})
				s.Nested[0].Second++
				p := &s
				fill(&p.Counted)
				return *p
			}
			func fill(*bool) {}
			func other() triage.Unrelated { return triage.Unrelated{Nowhere: true} }`,
		"internal/cli/app.go":                `package cli; import "sbx/internal/fleet"; func open() { fleet.New(fleet.Options{Given: 1}) }`,
		"internal/fleet/fleet_test.go":       `package fleet; import "sbx/internal/triage"; func x() { _ = triage.Signals{InTests: true} }`,
		"internal/testkit/fake/fake.go":      `package fake; import "sbx/internal/triage"; func x() { _ = triage.Signals{InAFake: true} }`,
		"internal/testkit/fleettest/fake.go": `package fleettest; import "sbx/internal/triage"; func x() { _ = triage.Signals{InAFake: true} }`,
	} {
		file = filepath.Join(root, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := unsetFields(root, inputs())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"fleet.Options.Default", "triage.Nested.Never", "triage.Signals.InAFake", "triage.Signals.InTests", "triage.Signals.Nowhere"}
	if !slices.Equal(found, want) {
		t.Fatalf("want %q, got %q", want, found)
	}
}

// module is this module, read as trees and typed as far as that goes without anything
// from outside it: a library is an empty package, and what depends on it has no type.
type module struct {
	fset  *token.FileSet
	dirs  map[string][]*ast.File // by import path, without tests and what serves them
	done  map[string]*types.Package
	info  types.Info
	units map[*ast.File]string // the import path of each file
}

// unsetFields names the fields of inputs that no line sets, sorted: "room.Type.Field".
func unsetFields(root string, of []input) ([]string, error) {
	m := module{
		fset: token.NewFileSet(), dirs: map[string][]*ast.File{}, done: map[string]*types.Package{}, units: map[*ast.File]string{},
		info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}},
	}
	if err := m.read(root); err != nil {
		return nil, err
	}
	for dir := range m.dirs {
		if _, err := m.Import(dir); err != nil {
			return nil, err
		}
	}
	var unset []string
	for _, in := range of {
		home := "sbx/internal/" + in.room
		named, ok := m.done[home].Scope().Lookup(in.name).(*types.TypeName)
		if !ok {
			continue
		}
		set := m.setFields(func(file string) bool { return !in.outside || file != home })
		for _, t := range nested(named.Type()) {
			_, fields := structOf(t)
			for field := range fields.Fields() {
				if name := in.room + "." + t.Obj().Name() + "." + field.Name(); !set[name] {
					unset = append(unset, name)
				}
			}
		}
	}
	slices.Sort(unset)
	return slices.Compact(unset), nil
}

// read parses what is neither a test nor made for tests.
func (m module) read(root string) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"testdata", "testkit", "tools", "dist"}, name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(m.fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		dir := "sbx/" + filepath.ToSlash(rel)
		m.dirs[dir], m.units[parsed] = append(m.dirs[dir], parsed), dir
		return err
	})
}

// Import is types.Importer's.
func (m module) Import(dir string) (*types.Package, error) {
	if p := m.done[dir]; p != nil {
		return p, nil
	}
	files, own := m.dirs[dir]
	if !own {
		p := types.NewPackage(dir, path.Base(dir))
		p.MarkComplete()
		m.done[dir] = p
		return p, nil
	}
	c := types.Config{Importer: m, Error: func(error) {}, FakeImportC: true}
	p, _ := c.Check(dir, m.fset, files, &m.info) // what libraries give has no type, which is an error each
	m.done[dir] = p
	return p, nil
}

// nested gives a struct type and those of its room that its fields hold.
func nested(t types.Type) []*types.Named {
	var found []*types.Named
	var walk func(types.Type)
	walk = func(t types.Type) {
		switch t := t.(type) {
		case *types.Pointer:
			walk(t.Elem())
		case *types.Slice:
			walk(t.Elem())
		case *types.Array:
			walk(t.Elem())
		case *types.Map:
			walk(t.Elem())
		case *types.Named:
			fields, ok := t.Underlying().(*types.Struct)
			if !ok || slices.Contains(found, t) || len(found) > 0 && t.Obj().Pkg() != found[0].Obj().Pkg() {
				return
			}
			found = append(found, t)
			for field := range fields.Fields() {
				walk(field.Type())
			}
		}
	}
	walk(t)
	return found
}

// setFields names the fields that a line sets, in the rooms that count: in a literal, by
// an assignment, or through a pointer to it.
func (m module) setFields(counts func(dir string) bool) map[string]bool {
	set := map[string]bool{}
	for file, dir := range m.units {
		if !counts(dir) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				m.literal(n, set)
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					m.target(to, set)
				}
			case *ast.IncDecStmt:
				m.target(n.X, set)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					m.target(n.X, set)
				}
			}
			return true
		})
	}
	return set
}

func (m module) literal(lit *ast.CompositeLit, set map[string]bool) {
	named, fields := structOf(m.info.TypeOf(lit))
	if named == nil {
		return
	}
	for i, e := range lit.Elts {
		name := ""
		if pair, keyed := e.(*ast.KeyValueExpr); !keyed {
			name = fields.Field(i).Name()
		} else if key, ok := pair.Key.(*ast.Ident); ok {
			name = key.Name
		}
		set[fieldName(named, name)] = true
	}
}

// target is what an assignment writes to: x.A.B sets B, and A with it.
func (m module) target(e ast.Expr, set map[string]bool) {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		if named, _ := structOf(m.info.TypeOf(e.X)); named != nil {
			set[fieldName(named, e.Sel.Name)] = true
		}
		m.target(e.X, set)
	case *ast.IndexExpr:
		m.target(e.X, set)
	case *ast.StarExpr:
		m.target(e.X, set)
	case *ast.ParenExpr:
		m.target(e.X, set)
	}
}

func structOf(t types.Type) (*types.Named, *types.Struct) {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := t.(*types.Named)
	if !ok {
		return nil, nil
	}
	fields, ok := named.Underlying().(*types.Struct)
	if !ok {
		return nil, nil
	}
	return named, fields
}

func fieldName(of *types.Named, field string) string {
	if of.Obj().Pkg() == nil {
		return ""
	}
	return strings.TrimPrefix(of.Obj().Pkg().Path(), "sbx/internal/") + "." + of.Obj().Name() + "." + field
}
