package main

import (
	"fmt"
	"go/ast"
	"io"
	"slices"
	"strings"
	"unicode"
)

// figures are those of one room, or of all.
type figures struct {
	Room       string      `json:"room"`
	Files      int         `json:"files"`
	Lines      int         `json:"lines"`
	CodeLines  int         `json:"code_lines"`
	TestLines  int         `json:"test_lines"`
	Exported   int         `json:"exported_names"`
	Functions  int         `json:"functions"`
	Unexported int         `json:"unexported_functions"`
	OneWord    int         `json:"one_word_functions"`
	Shared     int         `json:"functions_with_a_shared_name"`
	Arrows     int         `json:"arrows"`
	Upward     int         `json:"upward_arrows"`
	InCircles  int         `json:"files_in_circles"`
	Back       [][2]string `json:"upward"` // user and used, of one room
}

// report is one row for each room, and the total of several.
type report struct {
	Rooms []figures `json:"rooms"`
	Total *figures  `json:"total"` // nil = of one room
}

// sharedFrom is how many functions make a name a shared one.
const sharedFrom = 3

func measureRooms(rooms []*room) report {
	var r report
	total, everywhere := figures{Room: "total"}, []string{}
	for _, one := range rooms {
		total.TestLines += one.testLines
		if one.files == 0 {
			continue // test support, or tests alone
		}
		names := functionsOf(one)
		hidden := slices.DeleteFunc(slices.Clone(names), ast.IsExported)
		everywhere = append(everywhere, hidden...)
		g := arrowsOf(one)
		f := figures{
			Room: one.name, Files: one.files, Lines: one.lines, CodeLines: one.codeLines, TestLines: one.testLines, Exported: exported(one),
			Functions: len(names), Unexported: len(hidden), OneWord: oneWord(hidden), Shared: shared(hidden),
			Arrows: g.arrows(), Back: upward(g),
		}
		f.Upward = len(f.Back)
		for _, group := range components(g) {
			if len(group) > 1 {
				f.InCircles += len(group)
			}
		}
		r.Rooms = append(r.Rooms, f)
		total.Files += f.Files
		total.Lines += f.Lines
		total.CodeLines += f.CodeLines
		total.Exported += f.Exported
		total.Functions += f.Functions
		total.Unexported += f.Unexported
		total.OneWord += f.OneWord
		total.Arrows += f.Arrows
		total.Upward += f.Upward
		total.InCircles += f.InCircles
	}
	if len(r.Rooms) > 1 {
		total.Shared = shared(everywhere)
		r.Total = &total
	}
	return r
}

// functionsOf names the functions and methods of a room.
func functionsOf(r *room) []string {
	var names []string
	for _, file := range r.syntax {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name != "main" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// exported counts the names that a room shows to others: of declarations and of methods.
func exported(r *room) int {
	n := 0
	for _, name := range r.pkg.Scope().Names() {
		if ast.IsExported(name) {
			n++
		}
	}
	for _, file := range r.syntax {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() {
				n++
			}
		}
	}
	return n
}

// oneWord counts names without an upper-case letter and an underscore.
func oneWord(names []string) int {
	n := 0
	for _, name := range names {
		if !strings.ContainsFunc(name, func(c rune) bool { return unicode.IsUpper(c) || c == '_' }) {
			n++
		}
	}
	return n
}

// shared counts the functions whose name sharedFrom or more of them have.
func shared(names []string) int {
	times := map[string]int{}
	for _, name := range names {
		times[name]++
	}
	n := 0
	for _, count := range times {
		if count >= sharedFrom {
			n += count
		}
	}
	return n
}

// printTable writes Markdown.
func printTable(out io.Writer, r report) {
	fmt.Fprintln(out, "| room | files | lines | code | tests | exported | functions | unexported | one word | shared | arrows | upward | in circles |")
	fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	rows := r.Rooms
	if r.Total != nil {
		rows = append(slices.Clip(rows), *r.Total)
	}
	for _, f := range rows {
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %d | %d | %s | %s | %d | %s | %d |\n", f.Room, f.Files, f.Lines, f.CodeLines, f.TestLines, f.Exported, f.Functions, f.Unexported,
			portion(f.OneWord, f.Unexported), portion(f.Shared, f.Unexported), f.Arrows, portion(f.Upward, f.Arrows), f.InCircles)
	}
}

// portion shows a count with its percentage.
func portion(part, whole int) string {
	if whole == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%.0f %%)", part, 100*float64(part)/float64(whole))
}

func printArrows(out io.Writer, r report) {
	for _, f := range r.Rooms {
		for _, a := range f.Back {
			fmt.Fprintf(out, "%s: %s uses %s\n", f.Room, a[0], a[1])
		}
	}
}
