package cond

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// compiler turns the parser's tree into nodes, and checks types and units.
type compiler[T any] struct {
	source

	schema   Schema[T]
	set      *set[T] // conditions that may be used by name; nil = none
	literals map[int]literal

	names  []string
	look   bool
	leaves int
}

func compile[T any](text string, s Schema[T], in *set[T]) (*Condition[T], error) {
	c := &compiler[T]{source: source{text: text}, schema: s, set: in}
	if in != nil {
		c.name = in.current()
	}
	if err := c.checkLength(); err != nil {
		return nil, err
	}
	tree, err := c.parse()
	if err != nil {
		return nil, err
	}
	root, err := c.logic(tree.Node)
	if err != nil {
		return nil, err
	}
	if len(c.names) == 0 {
		return nil, c.mistake(place{0, len([]rune(text))}, s.Hint, "it uses no name, so it is the same for all")
	}
	return &Condition[T]{text: text, root: root, names: c.names, look: c.look, leaves: c.leaves}, nil
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

// parse gives the tree of the text. A panic of the parser is a mistake in the text.
func (c *compiler[T]) parse() (tree *parser.Tree, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			tree, err = nil, c.mistake(place{0, 1}, "", "the condition is malformed")
		}
	}()
	text, literals, err := scan(c.source, func(name string) bool { return c.schema.find(name) != nil || c.set.has(name) })
	if err != nil {
		return nil, err
	}
	c.literals = literals
	parsed, err := parser.ParseWithConfig(text, &conf.Config{MaxNodes: maxNodes, DisableIfOperator: true})
	if err != nil {
		return nil, c.syntaxError(err)
	}
	return parsed, nil
}

// unexpected is the parser's message for a token that does not fit.
func unexpected() *regexp.Regexp { return regexp.MustCompile(`^unexpected token (\w+)(?:\((.*)\))?$`) }

// syntaxError is the parser's error in plain words.
func (c *compiler[T]) syntaxError(err error) error {
	placed, ok := errors.AsType[*file.Error](err)
	if !ok {
		return c.mistake(place{0, 1}, "", "the condition is malformed")
	}
	at := place{placed.From, max(placed.To, placed.From+1)}
	if strings.Contains(placed.Message, "exceeds maximum allowed nodes") {
		return c.mistake(place{0, 1}, "split it", "the condition is too large: more than %d parts", maxNodes)
	}
	found := unexpected().FindStringSubmatch(placed.Message)
	switch {
	case found == nil:
		return c.mistake(at, "", "%s", strings.ToLower(placed.Message[:1])+placed.Message[1:])
	case found[1] == "EOF":
		end := len([]rune(strings.TrimRight(c.text, " \t\n")))
		return c.mistake(place{end, end + 1}, "", "the condition ends here, and a value or ) is missing")
	}
	word := string([]rune(c.text)[at.from:min(at.to, len([]rune(c.text)))])
	return c.mistake(at, hintUnexpected(found[1]), "%q is not expected here", word)
}

func hintUnexpected(token string) string {
	if token == "Identifier" || token == "Number" || token == "String" {
		return "join two comparisons with and, or"
	}
	return ""
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
		if op, is := logicOperator(n.Operator); is {
			return c.join(op, n)
		}
		if compares(n.Operator) {
			return c.compare(n)
		}
	case *ast.BoolNode:
		return &node[T]{op: opConstant, constant: truthOf(n.Value)}, nil
	case *ast.IdentifierNode:
		if c.set.has(n.Value) {
			return c.use(n)
		}
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

// use takes another condition of the set in.
func (c *compiler[T]) use(n *ast.IdentifierNode) (*node[T], error) {
	used, err := c.set.condition(n.Value, func(cycle string) error {
		return c.mistake(placeOf(n), "", "the conditions use each other: %s", cycle)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range used.names {
		c.note(name)
	}
	c.look = c.look || used.look
	if c.leaves += used.leaves; c.leaves > maxLeaves {
		return nil, c.mistake(placeOf(n), "", "the condition is too large: with those that it uses it has more than %d comparisons", maxLeaves)
	}
	return used.root, nil
}

func (c *compiler[T]) note(name string) {
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
}

func (c *compiler[T]) leafNode(l leaf[T]) *node[T] {
	c.leaves++
	return &node[T]{op: opLeaf, leaf: &l}
}

func placeOf(n ast.Node) place { return place{n.Location().From, n.Location().To} }

// operand compiles a value: a name, a literal, or a figure of both.
func (c *compiler[T]) operand(n ast.Node) (term[T], error) {
	switch n := n.(type) {
	case *ast.IdentifierNode, *ast.MemberNode, *ast.ChainNode:
		return c.nameTerm(n)
	case *ast.IntegerNode:
		if l, has := c.literals[n.Location().From]; has {
			return literalTerm[T](l, placeOf(n)), nil
		}
		return bareTerm[T](float64(n.Value), c.slice(placeOf(n)), placeOf(n)), nil
	case *ast.FloatNode:
		return bareTerm[T](n.Value, c.slice(placeOf(n)), placeOf(n)), nil
	case *ast.StringNode:
		return textTerm[T](n.Value, placeOf(n)), nil
	case *ast.BoolNode:
		return constantTerm[T](KindBool, Bool(n.Value), strconv.FormatBool(n.Value), placeOf(n)), nil
	case *ast.UnaryNode:
		if n.Operator == "-" || n.Operator == "+" {
			return c.negate(n)
		}
	case *ast.BinaryNode:
		if _, is := arithmetic()[n.Operator]; is {
			return c.calculate(n)
		}
	case *ast.BuiltinNode:
		return c.call(n.Name, n.Arguments, placeOf(n))
	case *ast.CallNode:
		if callee, named := n.Callee.(*ast.IdentifierNode); named {
			return c.call(callee.Value, n.Arguments, placeOf(n))
		}
	case *ast.NilNode:
		return term[T]{}, c.mistake(placeOf(n), "write NAME == nil or NAME != nil", "nil can only be compared with a name")
	case *ast.ArrayNode:
		return term[T]{}, c.mistake(placeOf(n), `write state in ["running", "paused"]`, "a list can only stand after in")
	}
	return term[T]{}, c.mistake(placeOf(n), `write a name, a number, or a text in quotes`, "%q is not allowed in a condition", c.slice(placeOf(n)))
}

// slice is the text at a place.
func (c *compiler[T]) slice(at place) string {
	runes := []rune(c.text)
	return string(runes[min(at.from, len(runes)):min(at.to, len(runes))])
}

// path is a name with dots: its words, and where it stands.
func path(n ast.Node) ([]string, place, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return []string{n.Value}, placeOf(n), true
	case *ast.MemberNode:
		words, at, ok := path(n.Node)
		property, isText := n.Property.(*ast.StringNode)
		if !ok || !isText || n.Optional || n.Method {
			return nil, place{}, false
		}
		return append(words, property.Value), at.join(placeOf(property)), true
	}
	return nil, place{}, false
}

// nameTerm compiles a name, or a label of labels: labels.team, labels["sbx/owner"].
func (c *compiler[T]) nameTerm(n ast.Node) (term[T], error) {
	words, at, ok := path(n)
	if !ok {
		return term[T]{}, c.mistake(placeOf(n), `write a name, or labels["KEY"]`, "this is not a name")
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
	if c.set.has(full) {
		return term[T]{}, c.mistake(at, "", "%s is a condition and cannot be compared", full)
	}
	return term[T]{}, c.mistake(at, suggest(full, append(c.schema.names(), c.set.names()...), c.schema.Hint), "no name %q", full)
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
