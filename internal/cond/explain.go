package cond

import (
	"cmp"
	"slices"
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

// Words are the leaves in words, each once: "236 active, limit 20".
func (e Explanation) Words() string {
	var texts []string
	for _, l := range e.Leaves {
		if !slices.Contains(texts, l.Words) {
			texts = append(texts, l.Words)
		}
	}
	return strings.Join(texts, "; ")
}

// Leaf is one comparison.
type Leaf struct {
	Text     string // as in the condition: "cpu_percent >= 95"
	Verdict  sandbox.Verdict
	Compared string // the values: "97 >= 95"; beside Unknown what is missing: "not reported"
	Words    string // for people, without names: "236 active, limit 20", "timeout rate not known"
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
	out := Leaf{Text: l.text, Verdict: l.eval(subject).verdict(), Words: l.words(subject)}
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

// words are what was seen, and the bound of a number: "236 active, limit 20". The other side of a text is left out.
func (l *leaf[T]) words(subject T) string {
	left, right := l.terms[0], l.terms[len(l.terms)-1]
	if left.fixed != nil {
		return right.sentence(subject)
	}
	text := left.sentence(subject)
	if l.op == "" || left.kind != KindNumber || left.value(subject).state < known {
		return text
	}
	bound := right.number(subject)
	if right.fixed == nil && right.names[0].Title != "" { // a figure, and no threshold
		bound = right.sentence(subject)
	}
	switch l.op {
	case ">", ">=":
		if l.op == ">" && bound == "0" {
			return text
		}
		return text + ", limit " + bound
	case "==":
		return text + ", target " + bound
	}
	return text + ", target " + l.op + " " + bound
}

// sentence is a value with what it is: "236 active", "timeout rate 12%", "state: running".
func (t term[T]) sentence(subject T) string {
	v, title := t.value(subject), t.title()
	switch {
	case v.state == absent && t.absentWord == "":
		return title + " not known"
	case v.state == absent:
		return title + " " + t.absentWord
	case v.state == unread:
		return title + " not known: " + v.text
	case v.kind == isText && len(t.names) > 0 && t.names[0].Label != nil:
		return title + ": " + t.names[0].Label(v.text)
	case v.kind == isText:
		return title + ": " + shorten(v.text)
	case v.kind == isBool:
		return title + ": " + map[bool]string{true: "yes", false: "no"}[v.number == 1]
	case v.kind == isNumber && t.unit == UnitCount:
		return t.number(subject) + " " + title
	}
	return title + " " + t.number(subject)
}

// number writes the value of a number in its unit, whatever is beside it.
func (t term[T]) number(subject T) string {
	if t.fixed != nil && t.kind == KindNumber {
		return formatNumber(t.fixed.number, t.unit, formNone)
	}
	return t.format(subject, formNone)
}

// title is the text of a term without the names that only conditions use.
func (t term[T]) title() string {
	text := t.text
	for _, n := range t.names {
		last := n.Name[strings.LastIndex(n.Name, ".")+1:]
		for _, unit := range []string{"_seconds", "_percent", "_mb"} { // the number is written with it
			last = strings.TrimSuffix(last, unit)
		}
		text = strings.Replace(text, n.Name, cmp.Or(n.Title, strings.ReplaceAll(last, "_", " ")), 1)
	}
	return text
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
