// Package gotemplate executes Go templates over the values of a JSON document.
//
// The language is that of text/template, read by its own parser (text/template/parse): actions, pipelines,
// variables, if, with, range, define, block, and its functions. A value is nil, bool, int, float64,
// string, []any or map[string]any, so there are no fields, methods or channels to reach. An
// unknown key is an error; numbers of both kinds compare with each other.
//
// text/template itself calls methods by their name, for which the linker has to keep every
// exported method of the program: 3.5 MB. The tests compare the output with it.
package gotemplate

import (
	"context"
	"fmt"
	"io"
	"maps"
	"text/template/parse"
)

// maxDepth is how deep templates may call each other.
const maxDepth = 10_000

// Function is a function that templates may call.
type Function func(arguments []any) (any, error)

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	trees     map[string]*parse.Tree
	functions map[string]Function
}

// mainName is what errors of the parser call the template.
const mainName = "template"

// Error is a mistake in a template or in its execution, at its place.
type Error struct {
	Line    int    // from 1; 0 = not known
	At      string // the part of the template; "" = not known
	Message string
	cause   error
}

// Error is "line 3: .foo: there is no key "foo"".
func (e *Error) Error() string {
	text := e.Message
	if e.At != "" {
		text = e.At + ": " + text
	}
	if e.Line > 0 {
		text = fmt.Sprintf("line %d: %s", e.Line, text)
	}
	return text
}

// Unwrap is the error of the writer or of the context that ended the execution, if any.
func (e *Error) Unwrap() error { return e.cause }

// Parse reads a template. Functions are added to those of the language. The error is an *Error.
func Parse(text string, functions map[string]Function) (*Template, error) {
	all := builtins()
	maps.Copy(all, functions)
	names := map[string]any{"and": 0, "or": 0}
	for name := range all {
		names[name] = 0
	}
	trees, err := parse.Parse(mainName, text, "", "", names)
	if err != nil {
		return nil, parseError(err)
	}
	return &Template{trees: trees, functions: all}, nil
}

// Execute writes the template over a document to w. It ends soon after ctx does. The error
// is an *Error, which wraps that of the writer or of ctx.
func (t *Template) Execute(ctx context.Context, w io.Writer, document any) error {
	e := &execution{template: t, ctx: ctx, w: w}
	return e.run(mainName, document)
}

// run executes one of the templates with a document of its own.
func (e *execution) run(name string, dot any) error {
	tree := e.template.trees[name]
	if tree == nil {
		return nil
	}
	outer, outerVars := e.tree, e.vars
	e.tree, e.vars = tree, []variable{{"$", dot}}
	e.depth++
	_, err := e.walk(tree.Root, dot)
	e.depth--
	e.tree, e.vars = outer, outerVars
	return err
}
