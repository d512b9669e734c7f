package cond

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// compiler turns the parser's tree into nodes, and checks types and units.
type compiler[T any] struct {
	source

	schema Schema[T]
	names  []string
	look   bool
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
func (c *compiler[T]) logic(n expression) (*node[T], error) {
	switch n := n.(type) {
	case unaryNode:
		if n.op == "not" || n.op == "!" {
			inner, err := c.logic(n.operand)
			return &node[T]{op: opNot, left: inner}, err
		}
	case binaryNode:
		if op, is := logicOperator(n.op); is {
			return c.join(op, n)
		}
		if compares(n.op) {
			return c.compare(n)
		}
	case boolNode:
		return &node[T]{op: opConstant, constant: truthOf(n.value)}, nil
	}
	t, err := c.operand(n)
	if err != nil {
		return nil, err
	}
	if t.kind != KindBool {
		return nil, c.mistake(t.at, "compare it: "+t.example(), "%s is a %s, not a condition", t.text, t.kind)
	}
	return c.leafNode(leaf[T]{text: t.text, terms: []term[T]{t}, eval: func(s T) truth { return boolTruth(t.value(s)) }}), nil
}

func logicOperator(op string) (operator, bool) {
	switch op {
	case "and", "&&":
		return opAnd, true
	case "or", "||":
		return opOr, true
	}
	return 0, false
}

func compares(op string) bool {
	return slices.Contains([]string{"==", "!=", "<", "<=", ">", ">=", "in", "contains", "startsWith", "endsWith", "matches"}, op)
}

func (c *compiler[T]) join(op operator, n binaryNode) (*node[T], error) {
	left, err := c.logic(n.left)
	if err != nil {
		return nil, err
	}
	right, err := c.logic(n.right)
	if err != nil {
		return nil, err
	}
	return &node[T]{op: op, left: left, right: right}, nil
}

func (c *compiler[T]) note(name string) {
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
}

func (c *compiler[T]) leafNode(l leaf[T]) *node[T] {
	return &node[T]{op: opLeaf, leaf: &l}
}

// operand compiles a value: a name, a literal, or a figure of both.
func (c *compiler[T]) operand(n expression) (term[T], error) {
	switch n := n.(type) {
	case nameNode, memberNode:
		return c.nameTerm(n)
	case numberNode:
		return literalTerm[T](n.literal, n.where()), nil
	case textNode:
		return textTerm[T](n.text, n.where()), nil
	case boolNode:
		return constantTerm[T](KindBool, Bool(n.value), strconv.FormatBool(n.value), n.where()), nil
	case unaryNode:
		if n.op == "-" || n.op == "+" {
			return c.negate(n)
		}
	case binaryNode:
		if _, is := arithmetic()[n.op]; is {
			return c.calculate(n)
		}
	case callNode:
		if callee, named := n.callee.(nameNode); named {
			return c.call(callee.name, n.arguments, n.where())
		}
	case nilNode:
		return term[T]{}, c.mistake(n.where(), "write NAME == nil or NAME != nil", "nil can only be compared with a name")
	case listNode:
		return term[T]{}, c.mistake(n.where(), `write state in ["running", "paused"]`, "a list can only stand after in")
	}
	return term[T]{}, c.mistake(n.where(), `write a name, a number, or a text in quotes`, "%q is not allowed in a condition", c.slice(n.where()))
}

// path is a name with dots: its words, and where it stands.
func path(n expression) ([]string, place, bool) {
	switch n := n.(type) {
	case nameNode:
		return []string{n.name}, n.where(), true
	case memberNode:
		words, at, ok := path(n.of)
		key, isText := n.key.(textNode)
		if !ok || !isText {
			return nil, place{}, false
		}
		return append(words, key.text), at.join(key.where()), true
	}
	return nil, place{}, false
}

// nameTerm compiles a name, or a label of labels: labels.team, labels["sbx/owner"].
func (c *compiler[T]) nameTerm(n expression) (term[T], error) {
	words, at, ok := path(n)
	if !ok {
		return term[T]{}, c.mistake(n.where(), `write a name, or labels["KEY"]`, "this is not a name")
	}
	full := strings.Join(words, ".")
	if name := c.schema.find(full); name != nil {
		c.note(name.Name)
		c.look = c.look || name.Look
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
	return term[T]{}, c.mistake(at, suggest(full, c.schema.names(), c.schema.Hint), "no name %q", full)
}

func (c *compiler[T]) labelTerm(name *Name[T], key string, at place) term[T] {
	c.note(name.Name)
	c.look = c.look || name.Look
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
