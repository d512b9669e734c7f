package gotemplate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// execution is one run of a template.
type execution struct {
	template *Template
	ctx      context.Context //nolint:containedctx // it lasts as long as Execute
	w        io.Writer

	tree  *parse.Tree // that is executed now
	vars  []variable  // the innermost last
	depth int
	steps int
}

type variable struct {
	name  string
	value any
}

// jump is how the walk over a node ended: it went on, or left the body of a loop.
type jump int8

const (
	onward jump = iota
	breaks
	continues
)

// contextEvery is after how many nodes the context is looked at.
const contextEvery = 256

// fail is an error at a node.
func (e *execution) fail(at parse.Node, format string, args ...any) error {
	place, part := e.tree.ErrorContext(at)
	return &Error{Line: lineOf(place), At: part, Message: fmt.Sprintf(format, args...)}
}

// lineOf is the line of a place like "template:3:12".
func lineOf(place string) int {
	_, rest, _ := strings.Cut(place, ":")
	line, _, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return n
}

// parseError is an error of the parser without the name that it gives the template.
func parseError(err error) error {
	text := strings.TrimPrefix(err.Error(), "template: ")
	rest, named := strings.CutPrefix(text, mainName+":")
	if !named {
		return &Error{Message: text, cause: err}
	}
	line, message, _ := strings.Cut(rest, ": ")
	message = strings.ReplaceAll(message, " started at "+mainName+":", " that began in line ")
	return &Error{Line: lineOf(":" + line), Message: message, cause: err}
}

func (e *execution) write(text string) error {
	if _, err := e.w.Write([]byte(text)); err != nil {
		return &Error{Message: err.Error(), cause: err}
	}
	return nil
}

// tick ends an execution whose context has ended.
func (e *execution) tick() error {
	if e.steps++; e.steps%contextEvery == 0 && e.ctx.Err() != nil {
		return &Error{Message: e.ctx.Err().Error(), cause: context.Cause(e.ctx)}
	}
	return nil
}

// walk executes one node.
func (e *execution) walk(n parse.Node, dot any) (jump, error) {
	if err := e.tick(); err != nil {
		return onward, err
	}
	switch n := n.(type) {
	case *parse.ListNode:
		return e.walkList(n, dot)
	case *parse.TextNode:
		return onward, e.write(string(n.Text))
	case *parse.ActionNode:
		value, err := e.pipeline(n.Pipe, dot)
		if err != nil || len(n.Pipe.Decl) > 0 {
			return onward, err
		}
		return onward, e.write(display(value))
	case *parse.IfNode:
		return e.branch(&n.BranchNode, dot, false)
	case *parse.WithNode:
		return e.branch(&n.BranchNode, dot, true)
	case *parse.RangeNode:
		return e.loop(n, dot)
	case *parse.TemplateNode:
		return onward, e.call(n, dot)
	case *parse.BreakNode:
		return breaks, nil
	case *parse.ContinueNode:
		return continues, nil
	}
	return onward, nil // a comment
}

func (e *execution) walkList(list *parse.ListNode, dot any) (jump, error) {
	if list == nil {
		return onward, nil
	}
	for _, n := range list.Nodes {
		if to, err := e.walk(n, dot); err != nil || to != onward {
			return to, err
		}
	}
	return onward, nil
}

// display is how an action prints a value.
func display(value any) string {
	switch v := value.(type) {
	case nil:
		return "<no value>"
	case string:
		return v
	}
	return fmt.Sprint(value)
}

// branch executes if and with; the second makes the value the dot.
func (e *execution) branch(n *parse.BranchNode, dot any, becomesDot bool) (jump, error) {
	defer e.forget(len(e.vars))
	value, err := e.pipeline(n.Pipe, dot)
	switch {
	case err != nil:
		return onward, err
	case !truth(value):
		return e.walkList(n.ElseList, dot)
	case becomesDot:
		dot = value
	}
	return e.walk(n.List, dot)
}

// forget removes the variables of a scope.
func (e *execution) forget(depth int) { e.vars = e.vars[:depth] }

// call executes {{template "name" pipeline}}.
func (e *execution) call(n *parse.TemplateNode, dot any) error {
	if e.template.trees[n.Name] == nil {
		return e.fail(n, "template %q is not defined", n.Name)
	}
	if e.depth >= maxDepth {
		return e.fail(n, "templates call each other more than %d times deep", maxDepth)
	}
	var value any
	if n.Pipe != nil {
		var err error
		if value, err = e.pipeline(n.Pipe, dot); err != nil {
			return err
		}
	}
	return e.run(n.Name, value)
}

// element is one round of a loop.
type element struct{ key, value any }

// loop executes range.
func (e *execution) loop(n *parse.RangeNode, dot any) (jump, error) {
	defer e.forget(len(e.vars))
	value, err := e.evaluate(n.Pipe, dot)
	if err != nil {
		return onward, err
	}
	elements, err := e.elements(n.Pipe, value)
	if err != nil {
		return onward, err
	}
	rounds := 0
	scope := len(e.vars)
	for one := range elements {
		rounds++
		e.forget(scope)
		e.bindRound(n.Pipe, one)
		switch to, err := e.walk(n.List, one.value); {
		case err != nil:
			return onward, err
		case to == breaks:
			return onward, nil
		}
	}
	if rounds == 0 {
		return e.walkList(n.ElseList, dot)
	}
	return onward, nil
}

// bindRound gives the variables of a range their values: $value, or $key and $value.
func (e *execution) bindRound(pipe *parse.PipeNode, one element) {
	values := []any{one.value}
	if len(pipe.Decl) == 2 {
		values = []any{one.key, one.value}
	}
	for i, d := range pipe.Decl {
		if pipe.IsAssign {
			e.assign(d.Ident[0], values[i])
			continue
		}
		e.vars = append(e.vars, variable{d.Ident[0], values[i]})
	}
}

// elements are the rounds of a range over a value: those of a list, of a map in the order of its keys, or n.
func (e *execution) elements(at *parse.PipeNode, value any) (iter.Seq[element], error) {
	switch v := value.(type) {
	case nil:
		return count(0), nil
	case []any:
		return ofList(v), nil
	case map[string]any:
		return ofMap(v), nil
	case int:
		if len(at.Decl) > 1 {
			return nil, e.fail(at, "a range over a number has one variable")
		}
		return count(v), nil
	}
	return nil, e.fail(at, "range needs a list, not %s", kindOf(value))
}

func ofList(list []any) iter.Seq[element] {
	return func(yield func(element) bool) {
		for i, one := range list {
			if !yield(element{i, one}) {
				return
			}
		}
	}
}

func ofMap(m map[string]any) iter.Seq[element] {
	return func(yield func(element) bool) {
		for _, key := range slices.Sorted(maps.Keys(m)) {
			if !yield(element{key, m[key]}) {
				return
			}
		}
	}
}

func count(n int) iter.Seq[element] {
	return func(yield func(element) bool) {
		for i := range n {
			if !yield(element{i, i}) {
				return
			}
		}
	}
}

// assign sets the innermost variable of a name. The parser refuses those that are not declared.
func (e *execution) assign(name string, value any) {
	for i := range slices.Backward(e.vars) {
		if e.vars[i].name == name {
			e.vars[i].value = value
			return
		}
	}
}

// lookup is the value of a variable.
func (e *execution) lookup(name string) any {
	for _, v := range slices.Backward(e.vars) {
		if v.name == name {
			return v.value
		}
	}
	return nil
}

// asError says where an error of a function came up.
func (e *execution) asError(at parse.Node, err error) error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return e.fail(at, "%s", err)
}
