package runbook

import (
	"cmp"
	"errors"
	"fmt"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"

	"sbx/internal/cond"
	"sbx/internal/fault"
	"sbx/internal/yamltext"
)

// Severity is how bad a finding is.
type Severity string

// The closed list. A document with an error cannot be followed.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Rule is what a finding is about.
type Rule string

// The closed list.
const (
	RuleSyntax      Rule = "syntax"            // the document is not readable as one
	RuleKind        Rule = "step-kind"         // a step says not one thing, or keys that do not belong to it
	RuleReference   Rule = "reference"         // an id that names nothing
	RuleExpression  Rule = "expression"        // a condition that cannot be evaluated
	RuleNotRead     Rule = "not-collected"     // a condition over what no step before it collects
	RuleUnreachable Rule = "unreachable-cause" // a cause that the steps cannot lead to
	RuleGate        Rule = "no-gate"           // a destructive step without a gate
	RuleProof       Rule = "no-proof"          // an acting step without proof of effect
	RuleETA         Rule = "eta"               // a step without ETA, or with times that contradict each other
	RuleSum         Rule = "eta-sum"           // the sum of the steps is not the ETA of the head: a warning
	RuleNumber      Rule = "number"            // a number in prose that is a threshold
	RuleDuplicate   Rule = "duplicate"         // an id or an alert twice
	RuleNoRunbook   Rule = "no-runbook"        // an alert that leads to no runbook
	RuleStale       Rule = "stale"             // a review that is overdue
	RuleUnused      Rule = "unused"            // what is declared and never named
	RuleOldName     Rule = "old-name"          // a name that the next release does not read: a warning
)

// Finding is what is wrong at one place of a document.
type Finding struct {
	File     string
	Line     int
	Column   int // in characters
	Severity Severity
	Rule     Rule
	Message  string // one line
	Hint     string // "" = the message says all
	Excerpt  []string
}

// Place is file:line:column.
func (f Finding) Place() string { return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column) }

// AsError is the finding as an error of a kind, with its excerpt.
func (f Finding) AsError(kind fault.Kind) error {
	err := fault.New(kind, "%s: %s", f.Place(), f.Message)
	err.Hint, err.Excerpt = f.Hint, f.Excerpt
	return err
}

// joinErrors gives the errors among findings as one error; nil = none.
func joinErrors(found []Finding) error {
	var errs []error
	for _, f := range found {
		if f.Severity == Error {
			errs = append(errs, f.AsError(fault.KindUsage))
		}
	}
	return errors.Join(errs...)
}

// sortFindings puts findings into the order of their places.
func sortFindings(found []Finding) {
	sort.SliceStable(found, func(i, j int) bool {
		a, b := found[i], found[j]
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) < 0
	})
}

// place is where a value stands in a document.
type place = yamltext.Place

// firstPlace stands for the document as a whole.
func firstPlace() place { return place{Line: 1, Column: 1, Width: 1} }

// source is the text of a document with the places of its values, by their paths:
// spec.steps[0].check.
type source struct {
	file   string
	text   string
	places map[string]place
	unread []string // the paths of values that are missing or could not be read
}

func (s source) finding(at place, severity Severity, rule Rule, message, hint string) Finding {
	mark := cond.Error{Text: s.text, Line: at.Line, Column: at.Column, Width: at.Width}
	return Finding{s.file, at.Line, at.Column, severity, rule, message, hint, mark.Excerpt()}
}

// within is the place of a part of a value: line and column of the part, from 1, in the value's
// text. A text that YAML has folded is marked as a whole.
func (s source) within(path string, line, column, width int) place {
	at := s.places[path]
	switch {
	case at.Style&yaml.LiteralStyle != 0:
		lines := strings.Split(s.text, "\n")
		at.Line += line
		if at.Line > len(lines) {
			return s.places[path]
		}
		text := lines[at.Line-1]
		at.Column = len(text) - len(strings.TrimLeft(text, " ")) + column
		if line > 1 { // further lines keep what they are indented by
			first := lines[s.places[path].Line]
			at.Column = len(first) - len(strings.TrimLeft(first, " ")) + column
		}
		at.Width = width
	case at.Style&yaml.FoldedStyle != 0 || line > 1 || at.Width == 1:
	default:
		if at.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			at.Column++
		}
		at.Column, at.Width = at.Column+column-1, width
	}
	return at
}
