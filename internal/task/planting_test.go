package task

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
)

// edit is one change of this package's source. Its place is found in the syntax tree of
// one function: names are identifiers that must all occur there, given as text or as the
// function or method itself.
type edit struct {
	in    any // the function or method
	place func(body *ast.BlockStmt) []ast.Node
	code  string // replaces the place
	after bool   // the code is inserted behind the opening brace instead
	about string
}

// begin inserts code at the start of a function.
func begin(in any, code string) edit {
	place := func(body *ast.BlockStmt) []ast.Node { return []ast.Node{body} }
	return edit{in: in, place: place, code: code, after: true, about: "the body"}
}

// never makes false the condition of an if, or one expression of a case, that has names.
func never(in any, names ...any) edit {
	place := func(body *ast.BlockStmt) []ast.Node {
		return innermost(body, names, func(n ast.Node) []ast.Node {
			switch n := n.(type) {
			case *ast.IfStmt:
				return []ast.Node{n.Cond}
			case *ast.CaseClause:
				nodes := make([]ast.Node, len(n.List))
				for i, expr := range n.List {
					nodes[i] = expr
				}
				return nodes
			}
			return nil
		})
	}
	return edit{in: in, place: place, code: "false", about: "the condition"}
}

// swap replaces the innermost statement that has names.
func swap(in any, code string, names ...any) edit {
	place := func(body *ast.BlockStmt) []ast.Node {
		return innermost(body, names, func(n ast.Node) []ast.Node {
			if _, block := n.(*ast.BlockStmt); block {
				return nil
			}
			if statement, ok := n.(ast.Stmt); ok {
				return []ast.Node{statement}
			}
			return nil
		})
	}
	return edit{in: in, place: place, code: code, about: "the statement"}
}

// drop deletes the innermost statement that has names.
func drop(in any, names ...any) edit { return swap(in, "", names...) }

// call replaces the one call of callee by a value.
func call(in, callee any, value string) edit {
	place := func(body *ast.BlockStmt) []ast.Node {
		return innermost(body, []any{callee}, func(n ast.Node) []ast.Node {
			if c, ok := n.(*ast.CallExpr); ok && mentions(c.Fun, []any{callee}) {
				return []ast.Node{c}
			}
			return nil
		})
	}
	return edit{in: in, place: place, code: value, about: "the call"}
}

// innermost gives the nodes that pick finds and that have names, without those that
// contain another of them.
func innermost(body *ast.BlockStmt, names []any, pick func(ast.Node) []ast.Node) []ast.Node {
	var found []ast.Node
	ast.Inspect(body, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		for _, picked := range pick(n) {
			if mentions(picked, names) {
				found = append(found, picked)
			}
		}
		return true
	})
	var inner []ast.Node
	for _, n := range found {
		contains := false
		for _, other := range found {
			contains = contains || other != n && n.Pos() <= other.Pos() && other.End() <= n.End()
		}
		if !contains {
			inner = append(inner, n)
		}
	}
	return inner
}

// mentions reports whether all names occur as identifiers below a node.
func mentions(n ast.Node, names []any) bool {
	present := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			present[id.Name] = true
		}
		return true
	})
	for _, name := range names {
		if !present[identifier(name)] {
			return false
		}
	}
	return true
}

// identifier is a name as it is written in the source.
func identifier(name any) string {
	if text, ok := name.(string); ok {
		return text
	}
	full, _ := declared(name)
	return full[strings.LastIndexByte(full, '.')+1:]
}

// declared gives the full name of a function or method, and the file that declares it.
func declared(fn any) (name, file string) {
	f := runtime.FuncForPC(reflect.ValueOf(fn).Pointer())
	path, _ := f.FileLine(f.Entry())
	return f.Name(), filepath.Base(path)
}

// apply gives the file of an edit with the edit made. sources holds files that earlier
// edits changed. A place that is not found, or found twice, is an error.
func (e edit) apply(sources map[string][]byte) (file string, err error) {
	full, file := declared(e.in)
	source, changed := sources[file]
	if !changed {
		if source, err = os.ReadFile(file); err != nil {
			return file, err
		}
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return file, err
	}
	var places []ast.Node
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && strings.HasSuffix(full, "."+receiver(f)+f.Name.Name) {
			places = append(places, e.place(f.Body)...)
		}
	}
	if len(places) != 1 {
		return file, fmt.Errorf("%s in %s: %s was found %d times", file, full, e.about, len(places))
	}
	from, to := set.Position(places[0].Pos()).Offset, set.Position(places[0].End()).Offset
	code := e.code
	if e.after {
		from, to, code = from+1, from+1, "\n"+code+"\n"
	}
	source = bytes.Join([][]byte{source[:from], []byte(code), source[to:]}, nil)
	if _, err := parser.ParseFile(token.NewFileSet(), file, source, 0); err != nil {
		return file, fmt.Errorf("%s in %s: the code does not parse: %w", file, full, err)
	}
	sources[file] = source
	return file, nil
}

// receiver is how runtime names the receiver of a method, with a dot; "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	switch of := f.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		if name, ok := of.X.(*ast.Ident); ok {
			return "(*" + name.Name + ")."
		}
	case *ast.Ident:
		return of.Name + "."
	}
	return ""
}
