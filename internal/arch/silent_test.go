package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// silentRooms are the rooms that report by values, events and observers alone, so that
// every skin can stand on them. They print nothing, read no terminal and import nothing
// that does.
func silentRooms() []string {
	return []string{"fleet", "safety", "cleanup", "reconcile", "task", "ops", "ops/look", "ops/end", "ops/launch", "ops/incidents"}
}

// printingImports are packages that print, lay out what is printed, or read flags.
func printingImports() []string {
	return []string{
		"log", "log/slog", "text/tabwriter", "sbx/internal/output", "sbx/internal/views", "sbx/internal/commands", "sbx/internal/cli",
		"github.com/spf13", "charm.land", "golang.org/x/term",
	}
}

func TestOperationsDoNotPrint(t *testing.T) {
	t.Parallel()
	for _, p := range prints(t, filepath.Join("..", "..")) {
		t.Error(p + ": report through the observer or the result")
	}
	for _, room := range silentRooms() {
		if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(room))); err != nil {
			t.Errorf("the silent room %s is not there: %v", room, err)
		}
	}
}

func TestPlantedPrintsAreFound(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		source string
		found  int
	}{
		"a line":                 {`import "fmt"; func f() { fmt.Println("done") }`, 1},
		"a renamed package":      {`import text "fmt"; func f() { text.Printf("done") }`, 1},
		"a function value":       {`import "fmt"; var say = fmt.Print`, 1},
		"a dot import":           {`import . "fmt"; func f() { Println("done") }`, 1},
		"a dot import of os":     {`import . "os"; func f() { Stdout.Close() }`, 1},
		"the process's file":     {`import ("fmt"; "os"); func f() { fmt.Fprintln(os.Stderr, "done") }`, 1},
		"a stream of the value":  {`func f(e *Env) { e.Process.Stdout.Write(nil) }`, 1},
		"a stream under a name":  {`func f(e *Env) { p := e.Process; w := p.Stderr; w.Write(nil) }`, 1},
		"the terminal's input":   {`func f(e *Env) bool { return e.Process.Stdin.TTY }`, 1},
		"a type of streams":      {`import "sbx/internal/process"; func f(s process.Stream) {}`, 1},
		"a builtin":              {`func f() { println("done") }`, 1},
		"a logger":               {`import "log/slog"; func f() { slog.Info("done") }`, 1},
		"a table":                {`import "sbx/internal/output"; func f(p *output.Printer) {}`, 1},
		"a page":                 {`import "sbx/internal/views"; var _ = views.StopColumns`, 1},
		"a command":              {`import "github.com/spf13/cobra"; func f(*cobra.Command) {}`, 1},
		"a flag":                 {`import "github.com/spf13/pflag"; func f(*pflag.FlagSet) {}`, 1},
		"a text":                 {`import "fmt"; func f() string { return fmt.Sprintf("%d", 1) }`, 0},
		"a text in parts":        {`import ("fmt"; "strings"); func f() { var b strings.Builder; fmt.Fprintf(&b, "x") }`, 0},
		"a function of its own":  {`func println(string) {}; func f() { println("done") }`, 0},
		"the observer":           {`func f(watch Observer) { watch.Note("done") }`, 0},
		"the clock of a process": {`func f(e *Env) { e.Process.Now() }`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			plant(t, root, "internal/ops/x.go", "package ops\n\n"+tc.source+"\n")
			plant(t, root, "internal/commands/x.go", "package commands\n\n"+tc.source+"\n") // may
			if found := prints(t, root); len(found) != tc.found {
				t.Fatalf("want %d violations, got %q", tc.found, found)
			}
		})
	}
}

// prints lists what prints in the silent rooms, and in the rooms within them.
func prints(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	eachSource(t, root, func(rel string, file *ast.File, set *token.FileSet) {
		rel = filepath.ToSlash(rel)
		if !slices.Contains(silentRooms(), strings.TrimPrefix(path.Dir(rel), "internal/")) {
			return
		}
		for _, p := range printsOf(file) {
			found = append(found, fmt.Sprintf("%s:%d: %s", rel, set.Position(p.pos).Line, p.what))
		}
	})
	return found
}

type printing struct {
	pos  token.Pos
	what string
}

// printsOf finds by syntax what prints in one file. Streams are told by the name of the
// field, whatever the value is called that has them.
func printsOf(file *ast.File) []printing {
	var found []printing
	names := map[string]string{} // how the file calls packages
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
		switch {
		case underAny(target, printingImports()):
			found = append(found, printing{spec.Pos(), "imports " + target})
		case name == "." && (target == "fmt" || target == "os" || target == "sbx/internal/process"):
			found = append(found, printing{spec.Pos(), "imports all names of " + target})
		}
	}
	own := map[string]bool{}
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
			own[f.Name.Name] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if what := printingSelector(n, names); what != "" {
				found = append(found, printing{n.Pos(), what})
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") && !own[f.Name] {
				found = append(found, printing{n.Pos(), "calls " + f.Name})
			}
		}
		return true
	})
	return found
}

// printingSelector says what a selector reaches that prints; "" = nothing. names maps the
// names of packages in the file to their paths.
func printingSelector(s *ast.SelectorExpr, names map[string]string) string {
	if slices.Contains([]string{"Stdout", "Stderr", "Stdin"}, s.Sel.Name) {
		return "uses a stream, ." + s.Sel.Name
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return ""
	}
	switch from := names[x.Name]; {
	case from == "fmt" && strings.HasPrefix(s.Sel.Name, "Print"), from == "sbx/internal/process" && s.Sel.Name == "Stream":
		return "uses " + from + "." + s.Sel.Name
	}
	return ""
}
