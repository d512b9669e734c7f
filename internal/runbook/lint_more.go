package runbook

import (
	"fmt"
	"slices"
	"strings"

	"sbx/internal/triage"
)

func (l *linter) checkCause(path string, c Cause) {
	var known []string
	for _, t := range triage.PossibleCauses() {
		known = append(known, t.ID)
	}
	first := slices.IndexFunc(l.book.Spec.Causes, func(other Cause) bool { return other.PossibleCause == c.PossibleCause })
	switch needs := possibleCauseNeeds(string(c.PossibleCause)); {
	case !slices.Contains(known, string(c.PossibleCause)):
		l.unknown(path+".theory", "cause", c.PossibleCause, known)
	case path != fmt.Sprintf("spec.causes[%d]", first):
		l.fail(path+".theory", RuleUnreachable, fmt.Sprintf("%s has a branch already", c.PossibleCause), "")
	case !containsAny(l.collected, needs):
		l.fail(path+".theory", RuleUnreachable, fmt.Sprintf("no step collects what shows %s", c.PossibleCause), "collect "+strings.Join(needs, " or "))
	}
	if c.See != "" && l.context.Others != nil && !slices.Contains(l.context.Others, string(c.See)) {
		l.unknown(path+".see", "runbook", c.See, l.context.Others)
	}
	l.checkSteps(path+".steps", c.Steps, c.PossibleCause)
}

// seeCycles are the causes of the document about which one runbook sends to another until this one comes
// again.
func (r *Runbook) seeCycles(byID map[Word]*Runbook) []Finding {
	var found []Finding
	for i, c := range r.Spec.Causes {
		way := []Word{r.Metadata.ID}
		for at := c.See; at != ""; {
			way = append(way, at)
			if slices.Index(way, at) < len(way)-1 {
				break
			}
			next := byID[at]
			at = ""
			if next != nil {
				at = next.seeFor(c.PossibleCause)
			}
		}
		if len(way) > 1 && way[len(way)-1] == r.Metadata.ID {
			found = append(found, r.source.finding(r.source.places[fmt.Sprintf("spec.causes[%d].see", i)], Error, RuleReference,
				fmt.Sprintf(
					"about %s it sends to %s, which leads back: %s", c.PossibleCause, c.See, strings.ReplaceAll(joinWords(way), ", ", " -> "),
				), "remove see here or there"))
		}
	}
	return found
}

// seeFor is the runbook to which this one sends about a cause; "" = none.
func (r *Runbook) seeFor(possible Word) Word {
	for _, c := range r.Spec.Causes {
		if c.PossibleCause == possible {
			return Word(r.SeeAlso(c))
		}
	}
	return ""
}

// checkPeople holds escalations, contacts and questions together.
func (l *linter) checkPeople() {
	var contacts []string
	seen := map[Word]bool{}
	for i, c := range l.book.Spec.Contacts {
		l.checkID(fmt.Sprintf("spec.contacts[%d].id", i), c.ID, seen)
		contacts = append(contacts, string(c.ID))
	}
	alerts := AlertIDs()
	for i, e := range l.book.Spec.Escalation {
		path := fmt.Sprintf("spec.escalation[%d]", i)
		if !slices.Contains(contacts, string(e.To)) {
			l.unknown(path+".to", "contact", e.To, contacts)
		}
		l.used["contact "+string(e.To)] = true
		switch {
		case (e.Alert == "") == (e.When == ""):
			l.fail(path, RuleKind, "an escalation names an alert or a condition, and not both", "")
		case e.Alert != "" && !slices.Contains(alerts, string(e.Alert)):
			l.unknownAlert(path+".alert", e.Alert, "with an alert of another system an escalation needs `when`, a condition")
		case e.Alert != "" && e.For > 0:
			l.fail(path+".for", RuleKind, "the alert says for how long it holds", "remove for")
		}
		l.checkCondition(path+".when", e.When, false)
	}
	seen = map[Word]bool{}
	for i, q := range l.book.Spec.Questions {
		path := fmt.Sprintf("spec.questions[%d]", i)
		l.checkID(path+".id", q.ID, seen)
		for n, id := range q.AnsweredBy {
			if _, ok := findCollector(id); !ok {
				l.unknown(fmt.Sprintf("%s.answered_by[%d]", path, n), "collector", id, collectorIDs())
			}
		}
	}
}

// checkWheres holds the commands of tasks against the program.
func (l *linter) checkWheres() {
	walk(l.book, func(path string, value any) {
		if t, ok := value.(Task); ok && t.Where != "" {
			l.checkLine(path+".where", t.Where)
		}
	})
}

func (l *linter) checkUnused() {
	for i, v := range l.book.Spec.Vars {
		if !l.used["vars."+string(v.ID)] {
			l.warn(fmt.Sprintf("spec.vars[%d].id", i), RuleUnused, fmt.Sprintf("nothing names vars.%s", v.ID), "")
		}
	}
	for i, c := range l.book.Spec.Contacts {
		if !l.used["contact "+string(c.ID)] {
			l.warn(fmt.Sprintf("spec.contacts[%d].id", i), RuleUnused, fmt.Sprintf("no escalation goes to %s", c.ID), "")
		}
	}
}
