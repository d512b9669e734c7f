package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// liveUses are the places that read a view of a provider which a watch keeps current (providers.Query.Live), or pass
// on that it may be read. All of them fill a screen again and again.
func liveUses() map[string]string {
	return map[string]string{
		"internal/fleet/history.go LiveStats":         "asks for it, for the dashboard",
		"internal/ops/look/live.go Round":             "the dashboard's rows",
		"internal/ops/look/list.go providerQuery":     "the rows of ls --watch",
		"internal/ops/look/top.go listTargets":        "the rows of top --watch",
		"internal/history/history.go LastSeen":        "another field of this name",
		"internal/reconcile/source.go storedRecord":   "another field of this name",
		"internal/providers/omoios/link.go readAlive": "another field of this name",
		"internal/commands/ls.go runLs":               "with --watch",
		"internal/commands/top.go readRequest":        "with --watch",
	}
}

// Nothing that decides or ends reads such a view: it may lack what the API knows.
func TestOnlyScreensReadLiveViews(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "internal"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, function := range liveUsesIn(parsed) {
			used[filepath.ToSlash(rel)+" "+function] = true
		}
		return nil
	}))
	for at := range used {
		assert.Contains(t, liveUses(), at, "it reads or sets Live: what decides reads the API")
	}
	for at := range liveUses() {
		assert.Contains(t, used, at, "it is listed and does not use Live")
	}
}

// liveUsesIn are the functions that set the field Live of a query or of a request that becomes one, or any field of
// that name, or that name LiveStats.
func liveUsesIn(file *ast.File) []string {
	var found []string
	for _, decl := range file.Decls {
		function := "a variable"
		if f, ok := decl.(*ast.FuncDecl); ok {
			function = f.Name.Name
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if usesLive(n) && !slices.Contains(found, function) {
				found = append(found, function)
			}
			return true
		})
	}
	return found
}

func usesLive(n ast.Node) bool {
	isLive := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.KeyValueExpr:
			key, ok := e.Key.(*ast.Ident)
			return ok && key.Name == "Live"
		case *ast.SelectorExpr:
			return e.Sel.Name == "Live"
		}
		return false
	}
	switch n := n.(type) {
	case *ast.CompositeLit:
		of := n.Type
		if s, ok := of.(*ast.SelectorExpr); ok {
			of = s.Sel
		}
		name, ok := of.(*ast.Ident)
		return ok && slices.Contains([]string{"Query", "ListRequest", "TopRequest"}, name.Name) && slices.ContainsFunc(n.Elts, isLive)
	case *ast.AssignStmt:
		return slices.ContainsFunc(n.Lhs, isLive)
	case *ast.SelectorExpr:
		return n.Sel.Name == "LiveStats"
	}
	return false
}

func TestPlantedUsesOfLiveViewsAreFound(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]string{
		"func f() { g(providers.Query{Live: true}) }":                            {"f"},
		"func f(q providers.Query) { q.Live = true }":                            {"f"},
		"func f(x *fleet.Fleet) { read := x.LiveStats; read(nil) }":              {"f"},
		"var q = providers.Query{All: true, Live: true}":                         {"a variable"},
		"func f() { g(providers.Query{All: true}) }":                             nil,
		"func f() { g(reconcile.Task{Live: true}) }":                             nil,
		"import \"sbx/internal/ops/look\"\n\nfunc f(l *look.Live) { l.Round() }": nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n\n"+source+"\n", parser.SkipObjectResolution)
		require.NoError(t, err)
		assert.Equal(t, want, liveUsesIn(file), source)
	}
}
