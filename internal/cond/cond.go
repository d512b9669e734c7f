// Package cond compiles and evaluates conditions over named values, for example
// `age_seconds > 10m and cpu_percent < 1%`.
//
// A condition is typed: names and their units come from a Schema, and a mistake is an error at
// load, with its place. It has three values: a value that is not reported makes the comparison
// unknown, never 0, false or "". Its evaluation is explained: each comparison with the values
// that it compared.
//
// The grammar is a part of that of expr-lang/expr, which parses it: values, comparisons, and, or,
// not. Types, units and the three values are this package's own. The package is pure: no clock, no
// input or output, no loops.
package cond

import (
	"slices"

	"sbx/internal/sandbox"
)

// Limits of one condition.
const (
	maxBytes = 4096
	maxNodes = 500
)

// Schema is the table of what conditions over a subject T may use.
type Schema[T any] struct {
	Names []Name[T]
	// Refused are names that a user is likely to type and that have no single meaning, each
	// with the hint what to write.
	Refused map[string]string
	// Hint is where the names are listed, for example "`sbx help conditions` lists the names".
	Hint string
}

// Name is one name that conditions may use.
type Name[T any] struct {
	Name    string // a word, or several with dots between
	Kind    Kind
	Unit    Unit // of a number
	Meaning string
	Title   string   // what it is in a sentence: "active"; "" = its last word
	Words   []string // the closed list of values of a text; nil = any text
	// Label names a value of a text in a sentence; nil = the value itself.
	Label func(string) string
	// Look says that only a look at the subject itself tells the value: before one, Value
	// returns Unread.
	Look  bool
	Value func(T) Value
}

func (s Schema[T]) find(name string) *Name[T] {
	i := slices.IndexFunc(s.Names, func(n Name[T]) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Names[i]
}

// names lists all names.
func (s Schema[T]) names() []string {
	names := make([]string, 0, len(s.Names))
	for _, n := range s.Names {
		names = append(names, n.Name)
	}
	return names
}

// Condition is a compiled condition over subjects of type T. It is immutable and safe for
// concurrent use.
type Condition[T any] struct {
	text  string
	root  *node[T]
	names []string
	look  bool
}

// Compile parses and checks a condition. Every error is fault.KindUsage, wraps an *Error with
// the place, and has a hint where one is known.
func Compile[T any](text string, s Schema[T]) (*Condition[T], error) {
	c := &compiler[T]{source: source{text: text}, schema: s, literals: map[int]literal{}}
	if err := c.checkLength(); err != nil {
		return nil, err
	}
	tree, err := c.parse()
	if err != nil {
		return nil, err
	}
	root, err := c.logic(tree)
	if err != nil {
		return nil, err
	}
	if len(c.names) == 0 {
		return nil, c.mistake(place{0, len([]rune(text))}, s.Hint, "it uses no name, so it is the same for all")
	}
	return &Condition[T]{text: text, root: root, names: c.names, look: c.look}, nil
}

// String is the text of the condition, as it was written.
func (c *Condition[T]) String() string { return c.text }

// Names are the names that the condition uses, each once, in order of appearance.
func (c *Condition[T]) Names() []string { return slices.Clone(c.names) }

// NeedsLook reports whether the condition uses a name that only a look tells.
func (c *Condition[T]) NeedsLook() bool { return c.look }

// Eval is the verdict on one subject. It allocates nothing of its own.
func (c *Condition[T]) Eval(subject T) sandbox.Verdict { return c.root.eval(subject).verdict() }

// Explain is Eval with every comparison, also those that do not decide.
func (c *Condition[T]) Explain(subject T) Explanation {
	e := Explanation{Verdict: c.Eval(subject)}
	c.root.walk(func(l *leaf[T]) { e.Leaves = append(e.Leaves, l.explain(subject)) })
	if e.Verdict == sandbox.Unknown {
		e.Missing = c.root.missing(subject, nil)
	}
	return e
}

// truth is a verdict as a number, so that and, or and not are the minimum, the maximum and the
// complement (Kleene).
type truth int8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func (t truth) verdict() sandbox.Verdict {
	switch t {
	case yes:
		return sandbox.True
	case no:
		return sandbox.False
	case unknown:
	}
	return sandbox.Unknown
}

// operator is what a node of a condition does.
type operator int8

const (
	opLeaf operator = iota
	opConstant
	opNot
	opAnd
	opOr
)

// node is one operator over verdicts, or a leaf: one comparison.
type node[T any] struct {
	op          operator
	left, right *node[T]
	leaf        *leaf[T]
	constant    truth
}

func (n *node[T]) eval(subject T) truth {
	switch n.op {
	case opLeaf:
		return n.leaf.eval(subject)
	case opNot:
		return yes - n.left.eval(subject)
	case opAnd:
		left := n.left.eval(subject)
		if left == no {
			return no
		}
		return min(left, n.right.eval(subject))
	case opOr:
		left := n.left.eval(subject)
		if left == yes {
			return yes
		}
		return max(left, n.right.eval(subject))
	case opConstant:
	}
	return n.constant
}

func (n *node[T]) walk(visit func(*leaf[T])) {
	if n == nil {
		return
	}
	if n.op == opLeaf {
		visit(n.leaf)
	}
	n.left.walk(visit)
	n.right.walk(visit)
}

// missing collects why a node is unknown: the reasons of the leaves below that leave it open,
// each once.
func (n *node[T]) missing(subject T, reasons []string) []string {
	if n == nil || n.eval(subject) != unknown {
		return reasons
	}
	if n.op == opLeaf {
		for _, reason := range n.leaf.missing(subject) {
			if !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
	}
	return n.right.missing(subject, n.left.missing(subject, reasons))
}
