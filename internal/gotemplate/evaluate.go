package gotemplate

import (
	"fmt"
	"strings"
	"text/template/parse"
)

// pipeline evaluates a pipeline and gives the result to its variables.
func (e *execution) pipeline(pipe *parse.PipeNode, dot any) (any, error) {
	value, err := e.evaluate(pipe, dot)
	if err != nil {
		return nil, err
	}
	for _, d := range pipe.Decl {
		if pipe.IsAssign {
			e.assign(d.Ident[0], value)
			continue
		}
		e.vars = append(e.vars, variable{d.Ident[0], value})
	}
	return value, nil
}

// evaluate evaluates the commands of a pipeline, each with the result of the one before as its last
// argument.
func (e *execution) evaluate(pipe *parse.PipeNode, dot any) (any, error) {
	var last []any
	for _, c := range pipe.Cmds {
		value, err := e.command(c, dot, last)
		if err != nil {
			return nil, err
		}
		last = []any{value}
	}
	return last[0], nil
}

// command evaluates one command: a function with arguments, or a value. last holds the result of the
// command before, if there is one.
func (e *execution) command(c *parse.CommandNode, dot any, last []any) (any, error) {
	first := c.Args[0]
	if f, isFunction := first.(*parse.IdentifierNode); isFunction {
		return e.function(f, c.Args[1:], dot, last)
	}
	if len(c.Args) > 1 || len(last) > 0 {
		return nil, e.fail(first, "this is a value and takes no argument")
	}
	if _, isNil := first.(*parse.NilNode); isNil {
		return nil, e.fail(first, "nil is not a command")
	}
	return e.value(first, dot)
}

// value evaluates one argument, or a command that is no function.
func (e *execution) value(n parse.Node, dot any) (any, error) {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.NilNode:
		return nil, nil //nolint:nilnil // the value is nil
	case *parse.BoolNode:
		return n.True, nil
	case *parse.StringNode:
		return n.Text, nil
	case *parse.NumberNode:
		return e.number(n)
	case *parse.FieldNode:
		return e.fields(n, dot, n.Ident)
	case *parse.VariableNode:
		return e.fields(n, e.lookup(n.Ident[0]), n.Ident[1:])
	case *parse.PipeNode:
		return e.pipeline(n, dot)
	case *parse.ChainNode:
		of, err := e.value(n.Node, dot)
		if err != nil {
			return nil, err
		}
		return e.fields(n, of, n.Field)
	case *parse.IdentifierNode:
		return e.function(n, nil, dot, nil)
	}
	return nil, e.fail(n, "this is no value")
}

// number is the value of a constant.
func (e *execution) number(n *parse.NumberNode) (any, error) {
	switch {
	case n.IsFloat && strings.ContainsAny(n.Text, ".eEpP") && !strings.HasPrefix(n.Text, "0x") && n.Text[0] != '\'':
		return n.Float64, nil
	case n.IsInt:
		return int(n.Int64), nil
	case n.IsFloat:
		return n.Float64, nil
	}
	return nil, e.fail(n, "%s is no number that a document has", n.Text)
}

// fields follows keys into maps.
func (e *execution) fields(at parse.Node, value any, keys []string) (any, error) {
	for _, key := range keys {
		switch of := value.(type) {
		case map[string]any:
			next, has := of[key]
			if !has {
				return nil, e.fail(at, "there is no key %q", key)
			}
			value = next
		case nil:
			return nil, e.fail(at, "there is no key %q in null", key)
		default:
			return nil, e.fail(at, "there is no key %q in %s", key, kindOf(value))
		}
	}
	return value, nil
}

// function calls a function. and, or evaluate only the arguments that they need.
func (e *execution) function(f *parse.IdentifierNode, arguments []parse.Node, dot any, last []any) (any, error) {
	if f.Ident == "and" || f.Ident == "or" {
		return e.decide(f, arguments, dot, last)
	}
	var values []any
	for _, n := range arguments {
		v, err := e.value(n, dot)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	value, err := e.template.functions[f.Ident](append(values, last...))
	if err != nil {
		return nil, e.asError(f, fmt.Errorf("%s: %w", f.Ident, err))
	}
	return value, nil
}

// decide is and, or: the first argument that decides, else the last one.
func (e *execution) decide(f *parse.IdentifierNode, arguments []parse.Node, dot any, last []any) (any, error) {
	if len(arguments)+len(last) == 0 {
		return nil, e.fail(f, "%s needs an argument", f.Ident)
	}
	var value any
	for _, n := range arguments {
		var err error
		if value, err = e.value(n, dot); err != nil || truth(value) == (f.Ident == "or") {
			return value, err
		}
	}
	if len(last) > 0 {
		value = last[0]
	}
	return value, nil
}
