package cond

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// compare compiles one comparison.
func (c *compiler[T]) compare(n *ast.BinaryNode) (*node[T], error) {
	if _, isNil := n.Left.(*ast.NilNode); isNil {
		return c.compareNil(n.Operator, n.Right, where(n))
	}
	if _, isNil := n.Right.(*ast.NilNode); isNil {
		return c.compareNil(n.Operator, n.Left, where(n))
	}
	left, err := c.operand(n.Left)
	if err != nil {
		return nil, err
	}
	if n.Operator == "in" {
		if list, isList := n.Right.(*ast.ArrayNode); isList {
			return c.compareList(left, list)
		}
	}
	right, err := c.operand(n.Right)
	if err != nil {
		return nil, c.unquoted(left, n.Right, err)
	}
	switch op := n.Operator; {
	case op == "in":
		return c.hasKey(op, right, left)
	case op == "contains" && left.kind != KindText:
		return c.hasKey(op, left, right)
	case op == "contains", op == "startsWith", op == "endsWith", op == "matches":
		return c.compareText(op, left, right)
	}
	return c.compareValues(n.Operator, left, right)
}

// unquoted adds to the error of an unknown word that a text needs quotes.
func (c *compiler[T]) unquoted(left term[T], right ast.Node, err error) error {
	word, isWord := right.(*ast.IdentifierNode)
	if !isWord || left.kind != KindText || fault.Nearest(word.Value, c.schema.names()) != "" {
		return err
	}
	return c.mistake(where(word), "a text needs quotes: "+strconv.Quote(word.Value), "no name %q", word.Value)
}

// compareNil asks whether a value is reported.
func (c *compiler[T]) compareNil(op string, n ast.Node, at place) (*node[T], error) {
	if op != "==" && op != "!=" {
		return nil, c.mistake(at, "write NAME == nil or NAME != nil", "nil cannot be compared by %s", op)
	}
	t, err := c.operand(n)
	if err != nil {
		return nil, err
	}
	if !t.named {
		return nil, c.mistake(t.at, "write NAME == nil or NAME != nil", "%s is no name, and only a name can be nil", t.text)
	}
	want := op == "=="
	return leafNode(leaf[T]{text: t.text + " " + op + " nil", terms: []term[T]{t}, eval: func(s T) truth {
		switch t.value(s).state {
		case unread:
			return unknown
		case absent:
			return truthOf(want)
		case known, atLeast:
		}
		return truthOf(!want)
	}}), nil
}

// compareValues compiles == != < <= > >=.
func (c *compiler[T]) compareValues(op string, left, right term[T]) (*node[T], error) {
	left, right, err := c.sameKind(op, left, right)
	if err != nil {
		return nil, err
	}
	n := pairNode(op, left, right, comparison(op))
	n.leaf.op = op
	return n, nil
}

// pairNode is a comparison of two values.
func pairNode[T any](op string, left, right term[T], compare func(a, b Value) truth) *node[T] {
	return leafNode(leaf[T]{text: left.text + " " + op + " " + right.text, terms: []term[T]{left, right}, eval: func(s T) truth {
		return compare(left.value(s), right.value(s))
	}})
}

// comparison is an operator over values.
func comparison(op string) func(a, b Value) truth {
	switch op {
	case "<":
		return less
	case ">":
		return func(a, b Value) truth { return less(b, a) }
	case "<=":
		return func(a, b Value) truth { return yes - less(b, a) }
	case ">=":
		return func(a, b Value) truth { return yes - less(a, b) }
	case "!=":
		return func(a, b Value) truth { return yes - same(a, b) }
	}
	return same
}

// less compares numbers and times, which may be lower bounds.
func less(a, b Value) truth {
	switch {
	case !a.comparable(b):
	case a.highest() < b.number:
		return yes
	case a.number >= b.highest():
		return no
	}
	return unknown
}

// same compares values of any kind but labels.
func same(a, b Value) truth {
	switch {
	case !a.comparable(b):
	case a.state == known && b.state == known:
		return truthOf(a.number == b.number && a.text == b.text)
	case a.highest() < b.number || b.highest() < a.number:
		return no
	}
	return unknown
}

// sameKind checks that two sides can be compared, and reads a time in quotes.
func (c *compiler[T]) sameKind(op string, left, right term[T]) (sameLeft, sameRight term[T], err error) {
	if left.kind == KindTime && right.kind == KindText && right.fixed != nil {
		right, err = c.asTime(left, right)
	} else if right.kind == KindTime && left.kind == KindText && left.fixed != nil {
		left, err = c.asTime(right, left)
	}
	switch {
	case err != nil:
	case left.kind != right.kind:
		err = c.wrongKind(left, right)
	case left.kind == KindNumber:
		left, right, err = c.alike(left, right)
	case left.kind == KindLabels:
		err = c.mistake(left.at, left.example(), "%s is a %s, which cannot be compared by %s", left.text, left.kind, op)
	case (left.kind == KindText || left.kind == KindBool) && op != "==" && op != "!=":
		err = c.mistake(left.at.join(right.at), "", "%s is a %s, which cannot be compared by %s", left.text, left.kind, op)
	case left.kind == KindText:
		err = c.checkText(left, right)
	}
	return left, right, err
}

// namedFirst puts a literal after the other side.
func namedFirst[T any](left, right term[T]) (name, other term[T]) {
	if left.fixed != nil {
		return right, left
	}
	return left, right
}

// wrongKind is the mistake of two sides of different kinds. What is not a literal decides.
func (c *compiler[T]) wrongKind(left, right term[T]) error {
	name, other := namedFirst(left, right)
	if other.kind == KindText && other.fixed != nil && name.kind == KindNumber {
		if l, is := literalOf(other.fixed.text); is && l.form != formBare {
			return c.mistake(other.at, "", "%s is %s: write %s without quotes", name.text, unitWords(name.unit), other.fixed.text)
		}
	}
	switch name.kind {
	case KindNumber:
		return c.mistake(other.at, "", "%s is %s: write %s", name.text, unitWords(name.unit), exampleOf(name.unit))
	case KindBool:
		return c.mistake(other.at, "", "%s is true, false or unknown: write %s, or not %s", name.text, name.text, name.text)
	case KindTime:
		return c.mistake(other.at, "a duration is compared with an age: age_seconds > 10m", `%s is a time: write "2026-11-22T12:00Z"`, name.text)
	case KindText, KindLabels:
	}
	return c.mistake(other.at, "", "%s is a %s: write %s", name.text, name.kind, name.example())
}

// asTime reads a text beside a time.
func (c *compiler[T]) asTime(name, text term[T]) (term[T], error) {
	at, ok := sandbox.ParseTime(text.fixed.text)
	if !ok {
		return text, c.mistake(
			text.at, "a relative time would mean another time at each evaluation: compare age_seconds, or write the time",
			`%s is a time: write "2026-11-22T12:00Z"`, name.text,
		)
	}
	return constantTerm[T](KindTime, Time(at), text.text, text.at), nil
}

// checkText refuses texts that a name never has.
func (c *compiler[T]) checkText(left, right term[T]) error {
	name, other := namedFirst(left, right)
	if other.fixed == nil {
		return nil
	}
	word := other.fixed.text
	switch {
	case word == "" && name.absentWord == "":
		return c.mistake(other.at, "write "+name.text+" == nil", "%s is never empty: it is not reported then", name.text)
	case len(name.words) > 0 && !slices.Contains(name.words, word):
		return c.mistake(other.at, fault.Meant(word, name.words), "%s is never %q", name.text, word)
	}
	return nil
}

// compareList compiles NAME in ["a", "b"].
func (c *compiler[T]) compareList(left term[T], list *ast.ArrayNode) (*node[T], error) {
	if len(list.Nodes) == 0 {
		return nil, c.mistake(where(list), "", "the list is empty, so nothing is in it")
	}
	var values []Value
	var texts []string
	for _, n := range list.Nodes {
		right, err := c.operand(n)
		if err != nil {
			return nil, c.unquoted(left, n, err)
		}
		if right.fixed == nil {
			return nil, c.mistake(right.at, "", "%s is a name, and a list holds only values", right.text)
		}
		if left, right, err = c.sameKind("==", left, right); err != nil {
			return nil, err
		}
		values, texts = append(values, *right.fixed), append(texts, right.text)
	}
	l := leaf[T]{text: left.text + " in [" + strings.Join(texts, ", ") + "]", terms: []term[T]{left}}
	l.eval = func(s T) truth {
		v, found := left.value(s), no
		for _, w := range values {
			found = max(found, same(v, w))
		}
		return found
	}
	return leafNode(l), nil
}

// hasKey compiles KEY in labels, labels contains KEY.
func (c *compiler[T]) hasKey(op string, labels, key term[T]) (*node[T], error) {
	switch {
	case labels.kind != KindLabels:
		return nil, c.mistake(labels.at, labels.example(), "%s is a %s, and nothing is in it", labels.text, labels.kind)
	case key.kind != KindText:
		return nil, c.mistake(key.at, "put it in quotes", "%s is a %s, not a text", key.text, key.kind)
	case op == "in":
		return pairNode(op, key, labels, func(key, labels Value) truth { return labels.has(key) }), nil
	}
	return pairNode(op, labels, key, Value.has), nil
}

// compareText compiles contains, startsWith, endsWith and matches.
func (c *compiler[T]) compareText(op string, left, right term[T]) (*node[T], error) {
	for _, side := range []term[T]{left, right} {
		if side.kind != KindText {
			return nil, c.mistake(side.at, "", "%s is a %s, and %s compares texts", side.text, side.kind, op)
		}
	}
	holds := map[string]func(text, part string) bool{"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix}[op]
	if op == "matches" {
		if right.fixed == nil {
			return nil, c.mistake(right.at, "write the pattern in quotes", "%s is a name, and a pattern must be a text", right.text)
		}
		pattern, err := regexp.Compile(right.fixed.text)
		if err != nil {
			return nil, c.mistake(right.at, "", "the pattern is malformed: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		holds = func(text, _ string) bool { return pattern.MatchString(text) }
	}
	return pairNode(op, left, right, func(a, b Value) truth {
		if !a.is(isText) || !b.is(isText) {
			return unknown
		}
		return truthOf(holds(a.text, b.text))
	}), nil
}

// leaf is one comparison.
type leaf[T any] struct {
	text  string
	op    string // of a comparison of two values
	terms []term[T]
	eval  func(T) truth
}

// missing lists why the leaf is unknown: what of its names is not reported.
func (l *leaf[T]) missing(subject T) []string {
	var reasons []string
	for _, t := range l.terms {
		for _, n := range t.names {
			if reason := t.missingReason(n.Value(subject)); reason != "" {
				reasons = append(reasons, n.Name+" "+reason)
			}
		}
	}
	if reasons == nil {
		reasons = append(reasons, l.text+" cannot be calculated")
	}
	return reasons
}

func (t term[T]) missingReason(v Value) string {
	switch v.state {
	case unread:
		return "is unknown: " + v.text
	case absent:
		return "is " + t.absence()
	case atLeast:
		return "is known only as a lower bound"
	case known:
	}
	return ""
}

func (t term[T]) absence() string {
	if t.absentWord != "" {
		return t.absentWord
	}
	return "not reported"
}
