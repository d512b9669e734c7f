package runbook

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/fault"
	"sbx/internal/requirement"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Context is what a document is held against.
type Context struct {
	Now time.Time
	// Others are the ids of all runbooks.
	Others []string
	// Shipped are the runbooks that sbx ships, also those that another one replaces.
	Shipped []*Runbook
	// CheckLine says what is wrong with a command line of sbx; nil = lines are not checked.
	CheckLine func(line string) error
}

// Lint are the findings about one document that Parse understood.
func (r *Runbook) Lint(c Context) []Finding {
	l := &linter{book: r, context: c, used: map[string]bool{}, steps: map[string]bool{}, schema: Schema(r.Spec.Vars)}
	l.checkHead()
	l.checkVars()
	l.checkSteps("spec.steps", r.Spec.Steps, "")
	l.refuseActs("spec.steps", r.Spec.Steps, "the diagnosis")
	l.checkETA()
	collected := slices.Clone(l.collected)
	for i, c := range r.Spec.Causes {
		l.collected = slices.Clone(collected)
		l.checkCause(fmt.Sprintf("spec.causes[%d]", i), c)
	}
	ids := map[Word]bool{}
	for i, p := range r.Spec.Procedures {
		l.collected = slices.Clone(collected)
		path := fmt.Sprintf("spec.procedures[%d]", i)
		l.checkID(path+".id", p.ID, ids)
		l.checkSteps(path+".steps", p.Steps, "")
	}
	l.collected = append(collected, "verify")
	l.checkSteps("spec.verification", r.Spec.Verification, "")
	l.refuseActs("spec.verification", r.Spec.Verification, "the verification")
	l.checkPeople()
	l.checkWheres()
	l.checkPlaceholders()
	l.numberFindings()
	l.checkUnused()
	sortFindings(l.found)
	return l.found
}

// LintAll are the findings about documents together: an id or an alert that two of them have.
func LintAll(books []*Runbook) []Finding {
	var found []Finding
	byID, byAlert := map[Word]*Runbook{}, map[string]*Runbook{}
	for _, r := range books {
		if first := byID[r.Metadata.ID]; first != nil {
			found = append(
				found,
				r.source.finding(r.source.places["metadata.id"], Error, RuleDuplicate, fmt.Sprintf("%s is also the id of %s", r.Metadata.ID, first.Origin.File), ""),
			)
			continue
		}
		byID[r.Metadata.ID] = r
		for i, a := range r.AlertNames() {
			path := fmt.Sprintf("metadata.alerts[%d]", i)
			if n := len(r.Metadata.Alerts); i >= n {
				path = fmt.Sprintf("metadata.other_alerts[%d]", i-n)
			}
			if first := byAlert[a]; first != nil && first != r {
				found = append(found, r.source.finding(r.source.places[path], Error, RuleDuplicate,
					fmt.Sprintf("%s leads to %s already", a, first.Metadata.ID), oneRunbookHint(first)))
				continue
			}
			byAlert[a] = r
		}
	}
	for _, r := range byID {
		found = append(found, r.seeCycles(byID)...)
	}
	sortFindings(found)
	return found
}

// oneRunbookHint says what to do about an alert that a runbook has already.
func oneRunbookHint(first *Runbook) string {
	if first.Origin.Shipped {
		return "an alert has one runbook; one with the id " + string(first.Metadata.ID) + " replaces it"
	}
	return "an alert has one runbook: take it out of this one, or out of " + first.Origin.File
}

type linter struct {
	book      *Runbook
	context   Context
	schema    cond.Schema[*Facts]
	found     []Finding
	collected []string        // collectors that have run before the step
	used      map[string]bool // vars.NAME and contact ids
	steps     map[string]bool // ids
	named     bool            // the steps are about what --ref names
}

func defaultThresholds() triage.Thresholds { return triage.DefaultThresholds() }

// add reports something about the value of a path, unless it may follow from what could not be read.
func (l *linter) add(path string, at place, severity Severity, rule Rule, message, hint string) {
	if !l.book.source.explains(path, rule) {
		l.found = append(l.found, l.book.source.finding(at, severity, rule, message, hint))
	}
}

// fail reports an error at the value of a path, or at its holder where there is none.
func (l *linter) fail(path string, rule Rule, message, hint string) {
	l.add(path, l.placeOf(path), Error, rule, message, hint)
}

// warn reports a warning likewise.
func (l *linter) warn(path string, rule Rule, message, hint string) {
	l.add(path, l.placeOf(path), Warning, rule, message, hint)
}

func (l *linter) placeOf(path string) place {
	for path != "" {
		if at, ok := l.book.source.places[path]; ok {
			return at
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return firstPlace()
}

func (l *linter) checkHead() {
	m := l.book.Metadata
	if !isID(m.ID) {
		l.fail("metadata.id", RuleReference, fmt.Sprintf("%q is no id", m.ID), "small letters, digits and hyphens, beginning with a letter")
	}
	alerts := AlertIDs()
	for i, a := range m.Alerts {
		path := fmt.Sprintf("metadata.alerts[%d]", i)
		if !slices.Contains(alerts, string(a)) {
			l.unknownAlert(path, a, "an alert of another system belongs under other_alerts")
		}
		if slices.Index(m.Alerts, a) < i {
			l.fail(path, RuleDuplicate, fmt.Sprintf("%s is given twice", a), "")
		}
	}
	if !l.book.Origin.Shipped && m.Updated.Time().After(l.context.Now.Add(24*time.Hour)) { // a day begins somewhere before it does in UTC
		l.warn("metadata.updated", RuleStale, fmt.Sprintf("the last review is in the future, on %s", m.Updated), "the day of the last review")
	}
	if due := l.book.ReviewDue(); l.context.Now.After(due) {
		l.warn(
			"metadata.updated", RuleStale, fmt.Sprintf("the last review was on %s, and one was due on %s", m.Updated, due.Format(time.DateOnly)),
			"review it, and set updated",
		)
	}
}

func isID(id Word) bool {
	odd := strings.ContainsFunc(string(id), func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') })
	return !odd && len(id) <= 63 && id != "" && id[0] >= 'a'
}

func (l *linter) unknown(path, kind string, word Word, choices []string) {
	hint := "there are: " + strings.Join(choices, ", ")
	if len(choices) == 0 {
		hint = "the document declares none"
	}
	if near := fault.Nearest(string(word), choices); near != "" {
		hint = "did you mean " + near + "?"
	}
	l.fail(path, RuleReference, fmt.Sprintf("no %s is called %q", kind, word), hint)
}

// unknownAlert reports a name that is no alert of sbx; foreign says where one of another system belongs.
func (l *linter) unknownAlert(path string, id Word, foreign string) {
	hint := foreign
	if near := fault.Nearest(string(id), AlertIDs()); near != "" {
		hint = "did you mean " + near + "? Else: " + foreign
	}
	l.fail(path, RuleReference, fmt.Sprintf("no alert of sbx is called %q", id), hint)
}

func (l *linter) checkVars() {
	seen := map[Word]bool{}
	for i, v := range l.book.Spec.Vars {
		path := fmt.Sprintf("spec.vars[%d]", i)
		l.checkID(path+".id", v.ID, seen)
		if _, _, err := v.amount(); err != nil {
			l.fail(path+".default", RuleSyntax, fmt.Sprintf("%q is neither a duration nor a share nor a number", v.Default), "")
		}
	}
}

func (l *linter) checkID(path string, id Word, seen map[Word]bool) {
	if seen[id] {
		l.fail(path, RuleDuplicate, fmt.Sprintf("%s is given twice", id), "")
	}
	seen[id] = true
}

// checkETA holds the sum of the diagnosis against what the head claims. Nothing that is done depends on it.
func (l *linter) checkETA() {
	if sum := ETA(l.book.Spec.Steps); sum > 0 && l.book.Metadata.ETA > 0 && sum != l.book.Metadata.ETA {
		l.warn("metadata.eta", RuleSum, fmt.Sprintf("the steps take %s, not %s", sandbox.FormatDuration(sum), sandbox.FormatDuration(l.book.Metadata.ETA)), "")
	}
}

func (l *linter) checkSteps(path string, steps []Step, possible Word) {
	l.named = slices.ContainsFunc(steps, func(s Step) bool { return s.Act != nil && s.Act.Targets == "named" })
	defer func() { l.named = false }()
	for i, s := range steps {
		l.checkStep(fmt.Sprintf("%s[%d]", path, i), s, possible)
	}
}

func (l *linter) checkStep(path string, s Step, possible Word) {
	if l.steps[string(s.ID)] {
		l.fail(path+".id", RuleDuplicate, fmt.Sprintf("another step is called %s", s.ID), "")
	}
	l.steps[string(s.ID)] = true
	l.checkStepKind(path, s)
	if s.Heading() == "" {
		l.fail(path, RuleSyntax, fmt.Sprintf("step %s has no title", s.ID), "")
	}
	if s.Duration() == 0 && s.Kind() != KindCheck { // of what was collected, a check takes no time
		l.fail(path, RuleETA, fmt.Sprintf("step %s has no eta", s.ID), "how long it takes a person, like 2m")
	}
	if s.Timeout > 0 && s.Timeout < s.Within {
		l.fail(
			path+".timeout", RuleETA,
			fmt.Sprintf("the step ends after %s, before %s of within", sandbox.FormatDuration(s.Timeout), sandbox.FormatDuration(s.Within)), "",
		)
	}
	l.checkCondition(path+".when", s.When, true)
	l.checkCondition(path+".check", s.Check, true)
	l.checkCondition(path+".wait_until", s.WaitUntil, false)
	l.checkCondition(path+".expect", s.Expect, false)
	for i, id := range s.Collect {
		if _, ok := findCollector(id); !ok {
			l.unknown(fmt.Sprintf("%s.collect[%d]", path, i), "collector", id, collectorIDs())
		}
		l.collected = append(l.collected, string(id))
	}
	if s.Act != nil {
		l.checkAct(path, s, possible)
	}
	for i, line := range s.Commands {
		l.checkLine(fmt.Sprintf("%s.commands[%d]", path, i), line)
	}
}

// checkStepKind reports a step that says not one thing, or has keys of another kind.
func (l *linter) checkStepKind(path string, s Step) {
	kinds := s.kinds()
	if len(kinds) != 1 {
		message := fmt.Sprintf("step %s does nothing", s.ID)
		if len(kinds) > 1 {
			message = fmt.Sprintf("step %s does several things: %s", s.ID, joinWords(kinds))
		}
		l.fail(path, RuleKind, message, "exactly one of "+joinWords(StepKinds()))
		return
	}
	for _, k := range []struct {
		key   string
		given bool
		of    []StepKind
	}{
		{"severity", s.Severity != "", []StepKind{KindCheck}},
		{"ask", s.Ask != "", []StepKind{KindManual}},
		{"gate", s.Gate != "", []StepKind{KindAct}},
		{"expect", s.Expect != "", []StepKind{KindAct}},
		{"within", s.Within > 0, []StepKind{KindAct, KindWaitUntil}},
		{"every", s.Every > 0, []StepKind{KindWaitUntil}},
	} {
		if k.given && !slices.Contains(k.of, kinds[0]) {
			l.fail(path+"."+k.key, RuleKind, fmt.Sprintf("%s does not belong to a step of kind %s", k.key, kinds[0]), "it belongs to "+joinWords(k.of))
		}
	}
	if s.WaitUntil != "" && s.Within == 0 {
		l.fail(path, RuleProof, fmt.Sprintf("step %s waits without a limit", s.ID), "within says for how long")
	}
}

func joinWords[T ~string](words []T) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}

// checkLine holds a command line of sbx against the program.
func (l *linter) checkLine(path, line string) {
	if l.context.CheckLine == nil || !strings.HasPrefix(line, "sbx ") {
		return
	}
	if err := l.context.CheckLine(l.book.Fill(line)); err != nil {
		l.fail(path, RuleReference, strings.ReplaceAll(err.Error(), "\n", "; "), fault.HintOf(err))
	}
}

// checkCondition compiles a condition. With before, a step before must have collected its names.
func (l *linter) checkCondition(path string, text Condition, before bool) {
	if text == "" {
		return
	}
	compiled, err := cond.Compile(string(text), l.schema)
	if err != nil {
		at, message := l.placeOf(path), err.Error()
		if e, ok := errors.AsType[*cond.Error](err); ok {
			at, message = l.book.source.within(path, e.Line, e.Column, e.Width), e.Message
		}
		l.add(path, at, Error, RuleExpression, message, fault.HintOf(err))
		return
	}
	for _, name := range ReadNames(compiled.Names()) {
		l.used[name] = true
		if now := requirement.Name(strings.TrimPrefix(name, verifyPrefix)); now != "" {
			l.warn(path, RuleOldName, "the next release does not read "+name, "write "+verifyPrefix+now)
		}
		if strings.HasPrefix(name, "sandbox.") && !l.named {
			l.warn(
				path, RuleNotRead, name+" is known only in a run with --ref, and makes the condition unknown in any other",
				"say in the text that the runbook is run with --ref REF",
			)
		}
		if by := CollectorsOf(name); before && len(by) > 0 && !containsAny(l.collected, by) {
			l.fail(path, RuleNotRead, "no step before this one collects "+name, "collect "+strings.Join(by, " or "))
		}
	}
}

// ReadNames replaces names of alerts by those of their conditions.
func ReadNames(names []string) []string {
	var all []string
	for _, name := range names {
		id, isAlert := strings.CutPrefix(name, alertPrefix)
		rule, known := check.Alert(id)
		if !isAlert || !known {
			all = append(all, name)
			continue
		}
		all = append(all, rule.Names()...)
	}
	return all
}

// CollectorsOf are the collectors that give a name; none for a name that is always known.
func CollectorsOf(name string) []string {
	if strings.HasPrefix(name, "stats.thresholds.") {
		return nil
	}
	var by []string
	for _, c := range Collectors() {
		if slices.ContainsFunc(c.Gives, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			by = append(by, c.ID)
		}
	}
	return by
}

func containsAny(list, some []string) bool {
	return slices.ContainsFunc(some, func(one string) bool { return slices.Contains(list, one) })
}
