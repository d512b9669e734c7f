package runbook

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops/look"
	"sbx/internal/requirement"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/triage"
	"sbx/internal/yamltext"
)

// figure is the check of verify that a step consists of.
func (s Step) figure() (task.Figure, bool) {
	id, _ := strings.CutPrefix(string(s.Check), verifyPrefix)
	id = cmp.Or(requirement.Name(id), id)
	all := look.VerifyFigures()
	i := slices.IndexFunc(all, func(f task.Figure) bool { return strings.HasPrefix(string(s.Check), verifyPrefix) && f.ID == id })
	if i < 0 {
		return task.Figure{}, false
	}
	return all[i], true
}

// Target is the target of a step that is a check of verify, by the default thresholds: "< 5"; "" =
// none.
func (s Step) Target() string {
	f, ok := s.figure()
	if !ok {
		return ""
	}
	bound := strconv.FormatFloat(f.Target.Bound, 'f', -1, 64)
	switch f.Unit {
	case task.UnitShare:
		bound = strconv.FormatFloat(math.Round(f.Target.Bound*100), 'f', -1, 64) + "%"
	case task.UnitSeconds:
		bound = sandbox.FormatDuration(time.Duration(f.Target.Bound) * time.Second)
	default:
	}
	return f.Target.Sign + " " + bound
}

// text is a running text of a document with its path.
type text struct{ path, text string }

// walk gives every value of a document with its path.
func walk(root any, visit func(path string, value any)) {
	walkValue(reflect.ValueOf(root), "", visit)
}

func walkValue(v reflect.Value, path string, visit func(string, any)) {
	visit(path, v.Interface())
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkValue(v.Elem(), path, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkValue(v.Index(i), path+"["+strconv.Itoa(i)+"]", visit)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Date]() {
			return
		}
		for _, f := range yamltext.FieldsOf(v.Type()) {
			walkValue(v.Field(f.Index), strings.TrimPrefix(path+"."+f.Key, "."), visit)
		}
	default:
	}
}

// texts are the running texts of the document that are not empty.
func (r *Runbook) texts() []text {
	var all []text
	walk(r, func(path string, value any) {
		if t, ok := value.(string); ok && t != "" {
			all = append(all, text{path, t})
		}
	})
	return all
}

// braced is a placeholder, or a template of another tool, such as {{.ID}}, which stays as it is.
var braced = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// placeholder is {{ name }} in a text.
var placeholder = regexp.MustCompile(`\{\{\s*([A-Za-z][^{}]*?)\s*\}\}`)

// Fill replaces the placeholders of a text: settings and variables by their defaults, figures by
// their names.
func (r *Runbook) Fill(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(match string) string {
		value, ok := r.lookup(placeholder.FindStringSubmatch(match)[1])
		if !ok {
			return match
		}
		return value
	})
}

// FillWith is Fill with the settings that are configured; a name that settings does not know has its
// default.
func (r *Runbook) FillWith(text string, settings func(key string) (string, bool)) string {
	return placeholder.ReplaceAllStringFunc(text, func(match string) string {
		if value, ok := settings(placeholder.FindStringSubmatch(match)[1]); ok {
			return value
		}
		return r.Fill(match)
	})
}

func (r *Runbook) lookup(name string) (string, bool) {
	for _, s := range config.DefaultSettings() {
		if s.Key == name {
			return s.Default, true
		}
	}
	for _, v := range r.Spec.Vars {
		if "vars."+string(v.ID) == name {
			return string(v.Default), true
		}
	}
	if slices.Contains(r.figureNames(), name) {
		return "`" + name + "`", true
	}
	return "", false
}

// limitInCondition is the name of a threshold in a condition.
var limitInCondition = regexp.MustCompile(`\b(?:stats\.)?thresholds\.[a-z_.]+`)

// possibleCauseInCondition is the id of a cause in a condition.
var possibleCauseInCondition = regexp.MustCompile(`(diagnose\.cause\s*[!=]=\s*)"(\w+)"`)

// NameCauses has the causes of a condition by the names that people read.
func NameCauses(text string) string {
	return possibleCauseInCondition.ReplaceAllStringFunc(text, func(match string) string {
		parts := possibleCauseInCondition.FindStringSubmatch(match)
		return parts[1] + strconv.Quote(triage.PossibleCauseLabel(parts[2]))
	})
}

// FillCondition is a condition in one line with the names of causes and the defaults of the thresholds that it names,
// for a page that is read without sbx.
func (r *Runbook) FillCondition(text string) string {
	return limitInCondition.ReplaceAllStringFunc(NameCauses(strings.Join(strings.Fields(text), " ")), func(name string) string {
		key := strings.TrimPrefix(name, "stats.")
		switch key { // the keys of stats are not those of the configuration
		case "thresholds.active_max":
			key = "thresholds.active"
		case "thresholds.escalate_active":
			key = "thresholds.escalate.active"
		}
		if value, ok := r.lookup(key); ok {
			return value
		}
		return name
	})
}

func (r *Runbook) figureNames() []string {
	var names []string
	for _, n := range Schema(r.Spec.Vars).Names {
		names = append(names, n.Name)
	}
	return names
}

// placeholderNames are all names that a placeholder may have.
func (r *Runbook) placeholderNames() []string {
	var names []string
	for _, s := range config.DefaultSettings() {
		names = append(names, s.Key)
	}
	return append(names, r.figureNames()...)
}

// amountInProse is a number with a unit that thresholds have.
var amountInProse = regexp.MustCompile(`(?i)(\d+(?:\.\d+)?)(?:\s|-|\x{a0})?(%|percent\b|seconds?\b|secs?\b|s\b|minutes?\b|mins?\b|m\b|hours?\b|h\b|days?\b|d\b|(?:running |active )?sandboxes\b)`)

// numberFindings are the numbers of running texts that are defaults of thresholds: such a text is
// wrong as soon as somebody sets the threshold.
func (l *linter) numberFindings() {
	for _, t := range l.book.texts() {
		if strings.Contains(t.path, ".commands[") {
			continue // an example value there is no claim
		}
		plain := placeholder.ReplaceAllStringFunc(t.text, func(m string) string { return strings.Repeat("_", len(m)) })
		for _, m := range amountInProse.FindAllStringSubmatchIndex(plain, -1) {
			keys := thresholdsOf(plain[m[2]:m[3]], strings.ToLower(plain[m[4]:m[5]]))
			if len(keys) == 0 || m[0] > 0 && strings.ContainsAny(plain[m[0]-1:m[0]], "0123456789._-") {
				continue
			}
			line, column := lineAndColumn(t.text, m[0])
			l.add(t.path, l.book.source.within(t.path, line, column, len([]rune(plain[m[0]:m[1]]))), Warning, RuleNumber,
				fmt.Sprintf("%q is also the default of %s", plain[m[0]:m[1]], strings.Join(keys, ", ")), "write {{ "+keys[0]+" }}")
		}
	}
}

// lineAndColumn is the place of a byte of a text, from 1, the column in characters.
func lineAndColumn(text string, at int) (line, column int) {
	before := text[:at]
	return 1 + strings.Count(before, "\n"), 1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
}

// thresholdsOf are the thresholds whose default is this number with this unit.
func thresholdsOf(number, unit string) []string {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return nil
	}
	kind := config.UnitSeconds
	switch unit[0] {
	case '%', 'p':
		kind, n = config.UnitRatio, n/100
	case 'm':
		n *= 60
	case 'h':
		n *= 3600
	case 'd':
		n *= 86400
	}
	if strings.HasSuffix(unit, "sandboxes") {
		kind = config.UnitCount
	}
	var keys []string
	for _, s := range thresholdDefaults() {
		if s.kind == kind && s.amount == n { //nolint:gocritic // both are written with few digits
			keys = append(keys, s.key)
		}
	}
	return keys
}

type thresholdDefault struct {
	key    string
	kind   config.Unit
	amount float64
}

func thresholdDefaults() []thresholdDefault {
	var all []thresholdDefault
	for _, s := range config.DefaultSettings() {
		if s.Amount != nil {
			all = append(all, thresholdDefault{s.Key, s.Unit, s.Amount(defaultThresholds())})
		}
	}
	return all
}

// checkPlaceholders reports placeholders that name nothing.
func (l *linter) checkPlaceholders() {
	for _, t := range l.book.texts() {
		for _, m := range placeholder.FindAllStringSubmatchIndex(t.text, -1) {
			name := t.text[m[2]:m[3]]
			if vars, ok := strings.CutPrefix(name, "vars."); ok {
				l.used["vars."+vars] = true
			}
			if _, known := l.book.lookup(name); known {
				continue
			}
			line, column := lineAndColumn(t.text, m[0])
			hint := "a placeholder is thresholds.NAME, limits.NAME, run.NAME, vars.NAME or a name of conditions"
			if near := fault.Nearest(name, l.book.placeholderNames()); near != "" {
				hint = "did you mean {{ " + near + " }}?"
			}
			l.add(t.path, l.book.source.within(t.path, line, column, m[1]-m[0]), Error, RuleReference, fmt.Sprintf("no value is called %q", name), hint)
		}
		if strings.Count(t.text, "{{") != len(braced.FindAllString(t.text, -1)) {
			l.fail(t.path, RuleReference, "a {{ without its }}", "")
		}
	}
}
