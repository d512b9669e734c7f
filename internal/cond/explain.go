package cond

import (
	"strconv"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Explanation is a verdict with the comparisons that gave it.
type Explanation struct {
	Verdict sandbox.Verdict
	Leaves  []Leaf // all comparisons, in the order of the text
	// Missing is why the verdict is unknown, one reason for each value: "operations is not
	// reported". Empty beside any other verdict.
	Missing []string
}

// String joins the leaves.
func (e Explanation) String() string {
	texts := make([]string, len(e.Leaves))
	for i, l := range e.Leaves {
		texts[i] = l.String()
	}
	return strings.Join(texts, "; ")
}

// Leaf is one comparison.
type Leaf struct {
	Text     string // as in the condition: "cpu_percent >= 95"
	Verdict  sandbox.Verdict
	Compared string // the values: "97 >= 95"; beside Unknown what is missing: "not reported"
}

// String is the comparison with its values: "cpu_percent >= 95: 97 >= 95 true", or
// "operations > 1000: not reported -> unknown".
func (l Leaf) String() string {
	if l.Verdict == sandbox.Unknown {
		return l.Text + ": " + l.Compared + " -> unknown"
	}
	return l.Text + ": " + l.Compared + " " + string(l.Verdict)
}

func (l *leaf[T]) explain(subject T) Leaf {
	out := Leaf{Text: l.text, Verdict: l.eval(subject).verdict()}
	if out.Verdict != sandbox.Unknown {
		out.Compared = l.compared(subject)
		return out
	}
	reasons := l.missing(subject)
	names := 0
	for _, t := range l.terms {
		names += len(t.names)
	}
	if names == 1 { // the text names it already
		for _, prefix := range []string{l.terms[0].nameText() + " is ", l.terms[len(l.terms)-1].nameText() + " is "} {
			reasons[0] = strings.TrimPrefix(reasons[0], prefix)
		}
	}
	out.Compared = strings.Join(reasons, ", ")
	return out
}

// nameText is the first name of a term.
func (t term[T]) nameText() string {
	if len(t.names) == 0 {
		return ""
	}
	return t.names[0].Name
}

// compared writes the values of a leaf that is decided.
func (l *leaf[T]) compared(subject T) string {
	if l.op == "" || len(l.terms) < 2 {
		return l.first(subject)
	}
	left, right := l.terms[0], l.terms[1]
	return left.format(subject, right.form) + " " + l.op + " " + right.format(subject, left.form)
}

// first writes the value of the side that is no literal.
func (l *leaf[T]) first(subject T) string {
	for _, t := range l.terms {
		if t.fixed == nil {
			return t.format(subject, formNone)
		}
	}
	return l.text
}

// maxShown is how much of a text value an explanation shows.
const maxShown = 60

// format writes a value as the literal beside it is written.
func (t term[T]) format(subject T, beside literalForm) string {
	if t.fixed != nil {
		return t.text
	}
	v := t.value(subject)
	switch {
	case v.state == absent:
		return t.absence()
	case v.state == unread:
		return "unknown"
	case v.kind == isText:
		return strconv.Quote(shorten(v.text))
	case v.kind == isBool:
		return strconv.FormatBool(v.number == 1)
	case v.kind == isTime:
		return time.UnixMicro(int64(v.number * 1e6)).UTC().Format(time.RFC3339)
	case v.kind == isLabels:
		return strconv.Itoa(len(v.labels)) + " labels"
	}
	text := formatNumber(v.number, t.unit, beside)
	if v.state == atLeast {
		return "at least " + text
	}
	return text
}

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxShown {
		return text
	}
	return string(runes[:maxShown]) + "..."
}

// formatNumber writes a number in the form of the literal beside it, else in its unit.
func formatNumber(n float64, u Unit, beside literalForm) string {
	plain := decimal(n)
	switch {
	case beside == formBare:
		return plain
	case u == UnitSeconds && n >= 0 && n < float64(maxShownSeconds):
		return sandbox.FormatElapsed(time.Duration(n * float64(time.Second)))
	case u == UnitMiB:
		return plain + "M"
	case u == UnitPercent:
		return plain + "%"
	case u == UnitRatio:
		return decimal(n*100) + "%"
	}
	return plain
}

// maxShownSeconds keeps a duration inside its type.
const maxShownSeconds = 1 << 32

// decimal writes a number with two decimals at most, for large ones none.
func decimal(n float64) string {
	places := 2
	if n >= 1000 || n <= -1000 {
		places = 0
	}
	text := strconv.FormatFloat(n, 'f', places, 64)
	if places > 0 {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
