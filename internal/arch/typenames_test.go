package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What is particular to a provider is a fact on providers.Type. Outside the room of a
// provider no production code may hold the name of a type, neither as a text nor by the
// room's constant: what does not hold a name cannot be compared with one.

// nameExceptions are the texts that are a type's name by intent or by accident, each
// with its reason: file and text.
func nameExceptions() map[string]string {
	return map[string]string{
		"internal/config/starter.go local":            "the starter file shows a profile by name where no type is registered",
		"internal/config/import.go daytona":           "the section of another program's settings that is translated",
		"internal/task/publish.go local":              "how a late publisher is held back: by the remote, or by this host",
		"internal/commands/suggest_tools.go docker":   "a program of others, whose name people type in front of a verb",
		"internal/commands/suggest_tools.go e2b":      "a program of others, whose name people type in front of a verb",
		"internal/commands/suggest_tools.go daytona":  "a program of others, whose name people type in front of a verb",
		"internal/commands/suggest_tools.go novita":   "a program of others, whose name people type in front of a verb",
		"internal/commands/suggest_tools.go vercel":   "a program of others, whose name people type in front of a verb",
		"internal/providers/omoios/client.go daytona": "the default of a setting: the profile that a source is attached to",
	}
}

func TestNoRoomKnowsAProviderByItsName(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	names := typeNames(t, root)
	for _, room := range []string{"local", "e2b", "daytona", "docker", "kubernetes", "vercel", "monotask", "omoios"} {
		if !slices.Contains(slices.Collect(maps.Values(names)), "providers/"+room) {
			t.Errorf("the room providers/%s declares no constant that ends with TypeName", room)
		}
	}
	used := map[string]bool{}
	for _, v := range nameUses(t, root, names) {
		if reason := nameExceptions()[v.file+" "+v.name]; reason != "" {
			used[v.file+" "+v.name] = true
			continue
		}
		t.Errorf("%s:%d holds the name of the provider type %q: state a fact on providers.Type and decide by that", v.file, v.line, v.name)
	}
	for exception := range nameExceptions() {
		if !used[exception] {
			t.Errorf("the exception %q is used by nobody: remove it", exception)
		}
	}
}

func TestPlantedTypeNamesAreFound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file, source string
		found        int
	}{
		"compared":           {"internal/x/x.go", `func f(kind string) bool { return kind == "local" }`, 1},
		"compared, not":      {"internal/x/x.go", `func f(kind string) bool { return "local" != kind }`, 1},
		"switched on":        {"internal/x/x.go", `func f(kind string) { switch kind { case "far", "local": } }`, 2},
		"a constant of it":   {"internal/x/x.go", "const hiding = \"local\"\nfunc f(kind string) bool { return kind == hiding }", 1},
		"a list of them":     {"internal/x/x.go", `func f() []string { return []string{"local", "far"} }`, 2},
		"the key of a table": {"internal/x/x.go", `func f() map[string]int { return map[string]int{"local": 1} }`, 1},
		"the room's own":     {"internal/x/x.go", "import \"sbx/internal/providers/local\"\nfunc f(kind string) bool { return kind == local.TypeName }", 1},
		"under another name": {"internal/x/x.go", "import here \"sbx/internal/providers/local\"\nfunc f(kind string) bool { return kind == here.TypeName }", 1},
		"another provider":   {"internal/providers/far/x.go", `func f(kind string) bool { return kind == "local" }`, 1},
		"the contract":       {"internal/providers/x.go", `func f(kind string) bool { return kind == "local" }`, 1},
		"in its own room":    {"internal/providers/local/x.go", `func f(kind string) bool { return kind == "local" }`, 0},
		"below its own room": {"internal/providers/local/record/x.go", `func f(kind string) bool { return kind == "local" }`, 0},
		"test support":       {"internal/testkit/x/x.go", `func f(kind string) bool { return kind == "local" }`, 0},
		"in a test":          {"internal/x/x_test.go", `func f(kind string) bool { return kind == "local" }`, 0},
		"part of a text":     {"internal/x/x.go", `func f() string { return "only local ones" }`, 0},
		"an import":          {"internal/x/x.go", `import _ "far"`, 0},
		"a key of JSON":      {"internal/x/x.go", "type f struct { A int `json:\"local\"` }", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			plant(t, root, "internal/providers/local/type.go", "package local\n\nconst TypeName = \"local\"\n")
			plant(t, root, "internal/providers/far/type.go", "package far\n\nconst (\n\tTypeName = \"far\"\n)\n")
			plant(t, root, tc.file, "package x\n\n"+tc.source+"\n")
			if found := nameUses(t, root, typeNames(t, root)); len(found) != tc.found {
				t.Fatalf("want %d violations, got %v", tc.found, found)
			}
		})
	}
}

func plant(t *testing.T, root, file, source string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(file))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
}

// typeNames maps the names of provider types to their rooms: the constants below
// providers whose name ends with TypeName.
func typeNames(t *testing.T, root string) map[string]string {
	t.Helper()
	names := map[string]string{}
	eachSource(t, root, func(rel string, file *ast.File, _ *token.FileSet) {
		room, below := strings.CutPrefix(filepath.ToSlash(filepath.Dir(rel)), "internal/")
		if !below || !strings.HasPrefix(room, "providers/") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if strings.HasSuffix(name.Name, "TypeName") && i < len(spec.Values) {
					if text := textOf(spec.Values[i]); text != "" {
						names[text] = room
					}
				}
			}
			return true
		})
	})
	return names
}

// nameUse is one place that holds the name of a provider type.
type nameUse struct {
	file string
	line int
	name string
}

func (u nameUse) String() string { return fmt.Sprintf("%s:%d %s", u.file, u.line, u.name) }

// nameUses finds every text that is the name of a type, and every use of the constant of
// its room, outside that room.
func nameUses(t *testing.T, root string, names map[string]string) []nameUse {
	t.Helper()
	rooms := slices.Collect(maps.Values(names))
	var found []nameUse
	eachSource(t, root, func(rel string, file *ast.File, set *token.FileSet) {
		room := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(rel)), "internal/")
		local := importedRooms(file, rooms)
		add := func(n ast.Node, name string) {
			found = append(found, nameUse{filepath.ToSlash(rel), set.Position(n.Pos()).Line, name})
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				owner, known := names[textOf(n)]
				if known && room != owner && !strings.HasPrefix(room, owner+"/") {
					add(n, textOf(n))
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && local[x.Name] != "" && local[x.Name] != room && strings.HasSuffix(n.Sel.Name, "TypeName") {
					add(n, x.Name+"."+n.Sel.Name)
				}
			}
			return true
		})
	})
	return found
}

// importedRooms are the names under which a file imports rooms of providers.
func importedRooms(file *ast.File, rooms []string) map[string]string {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		room := strings.TrimPrefix(path, "sbx/internal/")
		if err != nil || !slices.Contains(rooms, room) {
			continue
		}
		name := filepath.Base(room)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = room
	}
	return imported
}

// textOf is the value of a text literal; "" of anything else.
func textOf(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}

// eachSource parses the production code below internal and cmd.
func eachSource(t *testing.T, root string, see func(rel string, file *ast.File, set *token.FileSet)) {
	t.Helper()
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err) && path == filepath.Join(root, top):
				return filepath.SkipDir
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "testkit"):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			see(rel, file, set)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
