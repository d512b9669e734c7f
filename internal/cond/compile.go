package cond

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// compiler turns the parser's tree into nodes, and checks types and units.
type compiler[T any] struct {
	source

	schema   Schema[T]
	literals map[int]literal // the numbers of the text by their place
	names    []string
	look     bool
}

// where is the place of a node. That of an operator is its sign, that of a member its key.
func where(n ast.Node) place { return place{n.Location().From, n.Location().To} }

// literal is the number for which a word stands, if it does.
func (c *compiler[T]) literal(n ast.Node) (literal, bool) {
	_, isWord := n.(*ast.IdentifierNode)
	l, is := c.literals[n.Location().From]
	return l, is && isWord
}

func (c *compiler[T]) checkLength() error {
	switch {
	case strings.TrimSpace(c.text) == "":
		return c.mistake(place{0, 1}, "is a shell variable unset?", "the condition is empty")
	case len(c.text) > maxBytes:
		return c.mistake(place{0, 1}, "", "the condition has %d bytes; %d are allowed", len(c.text), maxBytes)
	}
	return nil
}

// logic compiles what must be true, false or unknown.
func (c *compiler[T]) logic(n ast.Node) (*node[T], error) {
	switch n := n.(type) {
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			inner, err := c.logic(n.Node)
			return &node[T]{op: opNot, left: inner}, err
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&":
			return c.join(opAnd, n)
		case "or", "||":
			return c.join(opOr, n)
		case "==", "!=", "<", "<=", ">", ">=", "in", "contains", "startsWith", "endsWith", "matches":
			return c.compare(n)
		}
	case *ast.BoolNode:
		return &node[T]{op: opConstant, constant: truthOf(n.Value)}, nil
	}
	t, err := c.operand(n)
	if err != nil {
		return nil, err
	}
	if t.kind != KindBool {
		return nil, c.mistake(t.at, "compare it: "+t.example(), "%s is a %s, not a condition", t.text, t.kind)
	}
	return leafNode(leaf[T]{text: t.text, terms: []term[T]{t}, eval: func(s T) truth { return same(t.value(s), Bool(true)) }}), nil
}

func (c *compiler[T]) join(op operator, n *ast.BinaryNode) (*node[T], error) {
	left, err := c.logic(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.logic(n.Right)
	if err != nil {
		return nil, err
	}
	return &node[T]{op: op, left: left, right: right}, nil
}

// note notes that the condition uses a name.
func (c *compiler[T]) note(n *Name[T]) {
	if !slices.Contains(c.names, n.Name) {
		c.names = append(c.names, n.Name)
	}
	c.look = c.look || n.Look
}

func leafNode[T any](l leaf[T]) *node[T] { return &node[T]{op: opLeaf, leaf: &l} }

// operand compiles a value: a name, a literal, or a figure of both.
func (c *compiler[T]) operand(n ast.Node) (term[T], error) {
	if l, is := c.literal(n); is {
		return literalTerm[T](l, where(n)), nil
	}
	switch n := n.(type) {
	case *ast.IdentifierNode, *ast.MemberNode:
		return c.nameTerm(n)
	case *ast.StringNode:
		return textTerm[T](n.Value, where(n)), nil
	case *ast.BoolNode:
		return constantTerm[T](KindBool, Bool(n.Value), strconv.FormatBool(n.Value), where(n)), nil
	case *ast.UnaryNode:
		if n.Operator == "-" || n.Operator == "+" {
			return c.negate(n)
		}
	case *ast.BinaryNode:
		if _, is := arithmetic()[n.Operator]; is {
			return c.calculate(n)
		}
	case *ast.BuiltinNode:
		return c.call(n.Name, n.Arguments, where(n))
	case *ast.CallNode:
		if callee, named := n.Callee.(*ast.IdentifierNode); named {
			return c.call(c.slice(where(callee)), n.Arguments, where(n))
		}
	case *ast.NilNode:
		return term[T]{}, c.mistake(where(n), "write NAME == nil or NAME != nil", "nil can only be compared with a name")
	case *ast.ArrayNode:
		return term[T]{}, c.mistake(where(n), `write state in ["running", "paused"]`, "a list can only stand after in")
	}
	return term[T]{}, c.mistake(where(n), `write a name, a number, or a text in quotes`, "%q is not allowed in a condition", c.slice(where(n)))
}

// path is a name with dots: its words, and where it stands.
func (c *compiler[T]) path(n ast.Node) ([]string, place, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		_, isNumber := c.literal(n)
		return []string{n.Value}, where(n), !isNumber
	case *ast.MemberNode:
		words, at, ok := c.path(n.Node)
		key, isText := n.Property.(*ast.StringNode)
		if !ok || !isText {
			return nil, place{}, false
		}
		return append(words, key.Value), at.join(where(key)), true
	}
	return nil, place{}, false
}

// nameTerm compiles a name, or a label of labels: labels.team, labels["sbx/owner"].
func (c *compiler[T]) nameTerm(n ast.Node) (term[T], error) {
	words, at, ok := c.path(n)
	if !ok {
		return term[T]{}, c.mistake(where(n), `write a name, or labels["KEY"]`, "this is not a name")
	}
	full := strings.Join(words, ".")
	if name := c.schema.find(full); name != nil {
		c.note(name)
		return term[T]{kind: name.Kind, unit: name.Unit, at: at, text: full, named: true, words: name.Words, names: []*Name[T]{name}, value: name.Value}, nil
	}
	if len(words) == 2 {
		if name := c.schema.find(words[0]); name != nil && name.Kind == KindLabels {
			return c.labelTerm(name, words[1], at), nil
		}
	}
	if hint, refused := c.schema.Refused[full]; refused {
		return term[T]{}, c.mistake(at, hint, "%s is ambiguous", full)
	}
	return term[T]{}, c.mistake(at, suggest(full, c.schema.names(), c.labelHint(full)), "no name %q", full)
}

// labelHint is how a label is written, where a word may be one, and where the names are listed.
func (c *compiler[T]) labelHint(word string) string {
	for _, name := range c.schema.Names {
		if name.Kind == KindLabels && plainWord(word) {
			return "a label is written " + name.Name + "." + word + "; " + c.schema.Hint
		}
	}
	return c.schema.Hint
}

func (c *compiler[T]) labelTerm(name *Name[T], key string, at place) term[T] {
	c.note(name)
	text := name.Name + "." + key
	if !plainWord(key) {
		text = fmt.Sprintf("%s[%q]", name.Name, key)
	}
	value := func(s T) Value { return name.Value(s).label(key) }
	label := &Name[T]{Name: text, Kind: KindText, Value: value}
	return term[T]{kind: KindText, at: at, text: text, named: true, names: []*Name[T]{label}, value: value, absentWord: "not set"}
}

func plainWord(text string) bool {
	return text != "" && isWordStart([]rune(text)[0]) && strings.IndexFunc(text, func(r rune) bool { return !isWordRune(r) }) < 0
}
