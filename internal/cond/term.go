package cond

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/expr-lang/expr/ast"

	"sbx/internal/sandbox"
)

// term is one side of a comparison.
type term[T any] struct {
	kind  Kind
	unit  Unit
	at    place
	text  string
	named bool // a name or a label: it may be compared with nil
	form  literalForm
	fixed *Value // of a literal, or of a figure of literals only
	words []string
	names []*Name[T]
	value func(T) Value

	absentWord string // what an absent value is; "" = "not reported"
}

func constantTerm[T any](k Kind, v Value, text string, at place) term[T] {
	return term[T]{kind: k, at: at, text: text, fixed: &v, value: func(T) Value { return v }}
}

func bareTerm[T any](n float64, text string, at place) term[T] {
	t := constantTerm[T](KindNumber, Number(n), text, at)
	t.form = formBare
	return t
}

func textTerm[T any](text string, at place) term[T] {
	return constantTerm[T](KindText, Value{state: known, kind: isText, text: text}, strconv.Quote(text), at)
}

// literalTerm is a literal with a unit: seconds, MiB or a ratio until it meets its name.
func literalTerm[T any](l literal, at place) term[T] {
	t := bareTerm[T](l.number, l.text, at)
	t.form = l.form
	switch l.form {
	case formDuration:
		t.unit = UnitSeconds
	case formSize:
		t = t.scaled(1.0/sandbox.MiB, UnitMiB)
	case formPercent:
		t = t.scaled(0.01, UnitRatio)
	case formNone, formBare:
	}
	return t
}

// scaled is a constant number in another unit.
func (t term[T]) scaled(factor float64, unit Unit) term[T] {
	v := Number(t.fixed.number * factor)
	t.fixed, t.unit, t.value = &v, unit, func(T) Value { return v }
	return t
}

// example is how a comparison with the term is written.
func (t term[T]) example() string {
	switch t.kind {
	case KindNumber:
		return t.text + " > " + exampleOf(t.unit)
	case KindText:
		if len(t.words) > 0 {
			return t.text + " == " + strconv.Quote(t.words[0])
		}
		return t.text + ` == "TEXT"`
	case KindTime:
		return t.text + ` < "2026-11-22T12:00Z"`
	case KindLabels:
		return `"TEXT" in ` + t.text
	case KindBool:
	}
	return t.text
}

// exampleOf is a literal of a unit.
func exampleOf(u Unit) string {
	return map[Unit]string{
		UnitNone: "10", UnitCount: "10", UnitMiBPerMinute: "10", UnitSeconds: "10m", UnitMiB: "512M", UnitPercent: "5%", UnitRatio: "5%",
	}[u]
}

// unitWords says what a number of a unit is.
func unitWords(u Unit) string {
	return map[Unit]string{
		UnitNone: "a number", UnitCount: "a count", UnitMiBPerMinute: "in MiB per minute", UnitSeconds: "a duration", UnitMiB: "a size",
		UnitPercent: "a percentage", UnitRatio: "a ratio from 0 to 1",
	}[u]
}

// fit gives a constant the unit of the other side: a bare number has the unit of the name, 5%
// is 5 of a percentage and 0.05 of a ratio. False = they cannot be compared.
func (t term[T]) fit(u Unit) (term[T], bool) {
	switch {
	case t.unit == u:
		return t, true
	case t.fixed == nil:
		return t, t.unit == UnitNone && u == UnitCount || t.unit == UnitCount && u == UnitNone
	case t.unit == UnitNone:
		t.unit = u
		return t, true
	case t.form == formPercent && u == UnitPercent:
		return t.scaled(100, u), true
	}
	return t, false
}

// alike gives both sides one unit, or a mistake.
func (c *compiler[T]) alike(left, right term[T]) (alikeLeft, alikeRight term[T], err error) {
	if r, ok := right.fit(left.unit); ok {
		return left, r, c.checkRatio(left, r)
	}
	if l, ok := left.fit(right.unit); ok {
		return l, right, c.checkRatio(right, l)
	}
	name, other := namedFirst(left, right)
	if other.fixed != nil {
		return left, right, c.mistake(other.at, "", "%s is %s: write %s", name.text, unitWords(name.unit), exampleOf(name.unit))
	}
	return left, right, c.mistake(left.at.join(right.at), "", "%s is %s, and %s is %s", left.text, unitWords(left.unit), right.text, unitWords(right.unit))
}

// checkRatio refuses timeout_rate > 5, which can never be true.
func (c *compiler[T]) checkRatio(name, literal term[T]) error {
	if name.unit == UnitRatio && name.named && literal.form == formBare && math.Abs(literal.fixed.number) > 1 {
		return c.mistake(literal.at, "", "%s is a ratio from 0 to 1: write %s%%", name.text, literal.text)
	}
	return nil
}

// arithmetic are the operators over numbers.
func arithmetic() map[string]func(a, b float64) float64 {
	return map[string]func(a, b float64) float64{
		"+": func(a, b float64) float64 { return a + b },
		"-": func(a, b float64) float64 { return a - b },
		"*": func(a, b float64) float64 { return a * b },
		"/": func(a, b float64) float64 { return a / b },
	}
}

// numberTerm compiles an operand of arithmetic.
func (c *compiler[T]) numberTerm(n ast.Node) (term[T], error) {
	t, err := c.operand(n)
	if err == nil && t.kind != KindNumber {
		err = c.mistake(t.at, "", "%s is a %s, and only numbers are calculated with", t.text, t.kind)
	}
	return t, err
}

func (c *compiler[T]) negate(n *ast.UnaryNode) (term[T], error) {
	t, err := c.numberTerm(n.Node)
	if err != nil || n.Operator == "+" {
		return t, err
	}
	return c.figure(t, bareTerm[T](-1, "", t.at), t.unit, arithmetic()["*"], "-"+t.text), nil
}

func (c *compiler[T]) calculate(n *ast.BinaryNode) (term[T], error) {
	left, err := c.numberTerm(n.Left)
	if err != nil {
		return left, err
	}
	right, err := c.numberTerm(n.Right)
	if err != nil {
		return right, err
	}
	unit := left.unit
	switch plain := func(u Unit) bool { return u == UnitNone || u == UnitCount || u == UnitRatio }; {
	case n.Operator == "+" || n.Operator == "-":
		if left, right, err = c.alike(left, right); err != nil {
			return left, err
		}
		unit = left.unit
	case n.Operator == "/" && left.unit == right.unit && left.unit != UnitNone:
		unit = UnitRatio
	case plain(right.unit):
	case plain(left.unit) && n.Operator == "*":
		unit = right.unit
	default:
		return left, c.mistake(
			left.at.join(right.at), "", "%s is %s and %s is %s: %s gives no unit", left.text, unitWords(left.unit), right.text, unitWords(right.unit),
			n.Operator,
		)
	}
	return c.figure(left, right, unit, arithmetic()[n.Operator], wrapped(left, n.Left)+" "+n.Operator+" "+wrapped(right, n.Right)), nil
}

// wrapped is the text of a term, in brackets where it is calculated itself.
func wrapped[T any](t term[T], n ast.Node) string {
	if _, calculated := n.(*ast.BinaryNode); calculated {
		return "(" + t.text + ")"
	}
	return t.text
}

// figure is a number calculated from two terms; unknown where one of them is not exact.
func (c *compiler[T]) figure(left, right term[T], unit Unit, of func(a, b float64) float64, text string) term[T] {
	value := func(s T) Value {
		a, b := left.value(s), right.value(s)
		if a.state != known || a.kind != isNumber {
			return a.asMissing()
		}
		if b.state != known || b.kind != isNumber {
			return b.asMissing()
		}
		return Number(of(a.number, b.number))
	}
	t := term[T]{kind: KindNumber, unit: unit, at: left.at.join(right.at), text: text, names: slices.Concat(left.names, right.names), value: value}
	if left.fixed != nil && right.fixed != nil {
		var none T
		v := value(none)
		t.fixed, t.form = &v, formBare
		if unit != UnitNone {
			t.form = max(left.form, right.form)
		}
	}
	return t
}

// call compiles the one function there is, len.
func (c *compiler[T]) call(name string, arguments []ast.Node, at place) (term[T], error) {
	if name != "len" {
		return term[T]{}, c.mistake(at, suggest(name, []string{"len"}, "the only function is len(TEXT or LABELS)"), "no function %q", name)
	}
	if len(arguments) != 1 {
		return term[T]{}, c.mistake(at, "write len(NAME)", "len takes one value")
	}
	t, err := c.operand(arguments[0])
	if err != nil {
		return t, err
	}
	if t.kind != KindText && t.kind != KindLabels {
		return t, c.mistake(t.at, "", "%s is a %s and has no length", t.text, t.kind)
	}
	return term[T]{
		kind: KindNumber, unit: UnitCount, at: at, text: fmt.Sprintf("len(%s)", t.text), names: t.names,
		value: func(s T) Value { return t.value(s).size() },
	}, nil
}
