package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// room is one package, parsed and typed.
type room struct {
	name                    string // its folder, as internal/fleet
	files, lines, codeLines int    // also of other platforms
	testLines               int    // of its tests; of a room of test support: all
	support                 bool   // only tests use it: below internal/testkit
	fset                    *token.FileSet
	syntax                  []*ast.File // of this platform
	pkg                     *types.Package
	info                    *types.Info
}

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, IgnoredGoFiles []string
	TestGoFiles             []string
	XTestGoFiles            []string
	DepOnly                 bool
	Error                   *struct{ Err string }
}

// loadRooms reads the rooms in these folders of a module; without any, all below internal and cmd.
// Types of imported packages are read from the build cache, which the go command fills.
func loadRooms(root string, folders []string) ([]*room, error) {
	patterns := []string{"./internal/...", "./cmd/..."}
	if len(folders) > 0 {
		patterns = nil
		for _, f := range folders {
			patterns = append(patterns, "./"+filepath.ToSlash(filepath.Clean(f)))
		}
	}
	packages, err := listPackages(root, patterns)
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	var rooms []*room
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		r, err := readRoom(root, p, exports)
		if err != nil {
			return nil, err
		}
		if r.files+r.testLines > 0 {
			rooms = append(rooms, r)
		}
	}
	return rooms, nil
}

// listPackages asks the go command for packages and everything that they import.
func listPackages(root string, patterns []string) ([]listed, error) {
	args := append([]string{"list", "-C", root, "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,DepOnly,Error"}, patterns...)
	var errs bytes.Buffer
	cmd := exec.Command("go", args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, strings.TrimSpace(errs.String()))
	}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, err
		case p.Error != nil:
			return nil, errors.New(p.Error.Err)
		}
		packages = append(packages, p)
	}
}

// codeLines counts the lines that hold more than space and comments.
func codeLines(text []byte) int {
	lines := map[int]bool{}
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return len(lines)
		case tok == token.SEMICOLON && literal == "\n": // inserted at the end of a line
			continue
		}
		first := file.Line(pos)
		for n := range strings.Count(literal, "\n") + 1 { // a raw string may span lines
			lines[first+n] = true
		}
	}
}

// readRoom parses and types one package.
func readRoom(root string, p listed, exports map[string]string) (*room, error) {
	name := p.Dir
	if abs, err := filepath.Abs(root); err == nil {
		if rel, err := filepath.Rel(abs, p.Dir); err == nil {
			name = filepath.ToSlash(rel)
		}
	}
	r := &room{
		name: name, support: strings.HasPrefix(name, "internal/testkit/"),
		fset: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}},
	}
	for _, file := range slices.Concat(p.GoFiles, p.IgnoredGoFiles, p.TestGoFiles, p.XTestGoFiles) {
		text, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			return nil, err
		}
		lines := bytes.Count(text, []byte("\n"))
		if r.support || strings.HasSuffix(file, "_test.go") {
			r.testLines += lines
			continue
		}
		r.files++
		r.lines += lines
		r.codeLines += codeLines(text)
	}
	if r.files == 0 {
		return r, nil
	}
	for _, file := range p.GoFiles {
		parsed, err := parser.ParseFile(r.fset, filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		r.syntax = append(r.syntax, parsed)
	}
	imports := importer.ForCompiler(r.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	config := types.Config{Importer: imports}
	var err error
	r.pkg, err = config.Check(p.ImportPath, r.fset, r.syntax, r.info)
	return r, err
}
