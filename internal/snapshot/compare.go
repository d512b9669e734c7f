package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Change is one difference between two conclusions from the same look.
type Change struct {
	Kind ChangeKind
	ID   string // of the flag, cause, alert, check, runbook or setting; "" = there is one of its kind
	Then string
	Now  string
	Gone []string // what was in it then and is not now
	New  []string // what is in it now and was not then
}

// ChangeKind is what differs.
type ChangeKind string

// The closed list.
const (
	ChangeSetting   ChangeKind = "setting"
	ChangeVerdict   ChangeKind = "verdict"
	ChangeListed    ChangeKind = "listed"
	ChangeStuck     ChangeKind = "stuck"
	ChangeSuspected ChangeKind = "suspected"
	ChangeUnjudged  ChangeKind = "unjudged"
	ChangePlan      ChangeKind = "plan"
	ChangeCause     ChangeKind = "cause"
	ChangeFlag      ChangeKind = "flag"
	ChangeAlert     ChangeKind = "alert"
	ChangeCheck     ChangeKind = "check"
	ChangeRunbook   ChangeKind = "runbook"
)

// CompareConclusions are the differences, those of sandboxes first. Runbooks are compared where both
// have them.
func CompareConclusions(then, now Concluded) []Change {
	var all []Change
	if then.Verdict != now.Verdict {
		all = append(all, Change{Kind: ChangeVerdict, Then: string(then.Verdict), Now: string(now.Verdict)})
	}
	if then.Listed != now.Listed {
		all = append(all, Change{Kind: ChangeListed, Then: strconv.Itoa(then.Listed), Now: strconv.Itoa(now.Listed)})
	}
	all = append(all, compareMarked(ChangeStuck, then.Stuck, now.Stuck)...)
	all = append(all, compareMarked(ChangeSuspected, then.Suspected, now.Suspected)...)
	all = append(all, compareRefs(ChangeUnjudged, then.Unjudged, now.Unjudged)...)
	all = append(all, compareRefs(ChangePlan, then.Plan, now.Plan)...)
	all = append(all, compareCauses(then.Causes, now.Causes)...)
	all = append(all, compareAnswers(ChangeFlag, "", then.Flags, now.Flags, sandbox.False)...)
	all = append(all, compareAnswers(ChangeAlert, "", alertAnswers(then.Alerts), alertAnswers(now.Alerts), sandbox.False)...)
	all = append(all, compareAnswers(ChangeCheck, "", then.Checks, now.Checks, sandbox.Unknown)...)
	return append(all, compareRunbooks(then.Runbooks, now.Runbooks)...)
}

// compareMarked compares which sandboxes there are, and the causes of those that both have.
func compareMarked(kind ChangeKind, then, now []Marked) []Change {
	causes := func(all []Marked) map[string]sandbox.Cause {
		m := map[string]sandbox.Cause{}
		for _, one := range all {
			m[one.Ref] = one.Cause
		}
		return m
	}
	before, after := causes(then), causes(now)
	all := compareRefs(kind, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	for _, ref := range slices.Sorted(maps.Keys(before)) {
		if cause, both := after[ref]; both && cause != before[ref] {
			all = append(all, Change{Kind: kind, ID: ref, Then: string(before[ref]), Now: string(cause)})
		}
	}
	return all
}

func compareRefs(kind ChangeKind, then, now []string) []Change {
	lost, added := without(then, now), without(now, then)
	if len(lost)+len(added) == 0 {
		return nil
	}
	return []Change{{Kind: kind, Then: strconv.Itoa(len(then)), Now: strconv.Itoa(len(now)), Gone: lost, New: added}}
}

// without are those of all that are not in others, sorted.
func without(all, others []string) []string {
	there := make(map[string]bool, len(others))
	for _, one := range others {
		there[one] = true
	}
	left := slices.DeleteFunc(slices.Clone(all), func(one string) bool { return there[one] })
	slices.Sort(left)
	return left
}

// compareCauses compares the confidence of each cause, and which one is the first.
func compareCauses(then, now []Cause) []Change {
	answers := func(all []Cause) []Answer {
		var list []Answer
		for _, c := range all {
			list = append(list, Answer{c.ID, sandbox.Verdict(c.Confidence)})
		}
		return list
	}
	all := compareAnswers(ChangeCause, "", answers(then), answers(now), "")
	if first, second := firstCause(then), firstCause(now); first != second {
		all = append(all, Change{Kind: ChangeCause, Then: first, Now: second})
	}
	return all
}

func firstCause(all []Cause) string {
	if len(all) == 0 {
		return "none"
	}
	return all[0].ID
}

func alertAnswers(all []Alert) []Answer {
	var list []Answer
	for _, a := range all {
		list = append(list, Answer{a.Rule + " at " + a.Provider, a.Verdict})
	}
	return list
}

// compareAnswers compares the verdict of each id; missing is that of one that is not there.
func compareAnswers(kind ChangeKind, prefix string, then, now []Answer, missing sandbox.Verdict) []Change {
	verdict := func(all []Answer, id string) sandbox.Verdict {
		if i := slices.IndexFunc(all, func(a Answer) bool { return a.ID == id }); i >= 0 {
			return all[i].Verdict
		}
		return missing
	}
	var all []Change
	var seen []string
	for _, a := range slices.Concat(then, now) {
		if slices.Contains(seen, a.ID) {
			continue
		}
		seen = append(seen, a.ID)
		if before, after := verdict(then, a.ID), verdict(now, a.ID); before != after {
			all = append(all, Change{Kind: kind, ID: prefix + a.ID, Then: string(before), Now: string(after)})
		}
	}
	return all
}

func compareRunbooks(then, now []Runbook) []Change {
	var all []Change
	for _, before := range then {
		i := slices.IndexFunc(now, func(b Runbook) bool { return b.ID == before.ID })
		if i < 0 {
			continue
		}
		after := now[i]
		all = append(all, compareAnswers(ChangeRunbook, before.ID+": step ", before.Checks, after.Checks, sandbox.False)...)
		all = append(all, compareAnswers(ChangeRunbook, before.ID+": branch ", selected(before.Causes), selected(after.Causes), sandbox.False)...)
		all = append(all, compareAnswers(ChangeRunbook, before.ID+": escalation ", before.Escalations, after.Escalations, sandbox.False)...)
	}
	return all
}

func selected(causes []string) []Answer {
	var all []Answer
	for _, c := range causes {
		all = append(all, Answer{c, sandbox.True})
	}
	return all
}

// CompareSettings are the thresholds that differ: those of a provider, and of an agent type where
// they differ from those of its provider.
func CompareSettings(then, now []Setting) []Change {
	var all []Change
	for _, before := range then {
		i := slices.IndexFunc(now, func(s Setting) bool { return s.Provider == before.Provider && s.AgentType == before.AgentType })
		if i < 0 { // the agent type has no thresholds of its own now
			i = slices.IndexFunc(now, func(s Setting) bool { return s.Provider == before.Provider && s.AgentType == "" })
		}
		if i < 0 {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(before.Thresholds)) {
			if text, known := now[i].Thresholds[key]; known && text != before.Thresholds[key] {
				place := strings.TrimSpace(before.Provider + " " + before.AgentType)
				all = append(all, Change{Kind: ChangeSetting, ID: key + " (" + place + ")", Then: before.Thresholds[key], Now: text})
			}
		}
	}
	return joinPlaces(all)
}

// joinPlaces makes one change of those of one key with the same values.
func joinPlaces(all []Change) []Change {
	var joined []Change
	for _, c := range all {
		key, place, _ := strings.Cut(strings.TrimSuffix(c.ID, ")"), " (")
		i := slices.IndexFunc(joined, func(j Change) bool { return j.ID == key && j.Then == c.Then && j.Now == c.Now })
		if i < 0 {
			joined = append(joined, Change{Kind: c.Kind, ID: key, Then: c.Then, Now: c.Now, New: []string{place}})
			continue
		}
		joined[i].New = append(joined[i].New, place)
	}
	return slices.SortedStableFunc(slices.Values(joined), func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
}

// fewRefs is how many sandboxes a sentence names.
const fewRefs = 5

// String is the change in words: "stuck 26 -> 24: no longer local/abc, local/def".
func (c Change) String() string {
	text := string(c.Kind)
	if c.ID != "" {
		text = strings.TrimSpace(string(c.Kind) + " " + c.ID)
	}
	if book, theory, isBranch := strings.Cut(text, ": branch "); isBranch {
		text = book + ": branch " + triage.TheoryLabel(theory)
	}
	switch c.Kind {
	case ChangeSetting:
		return fmt.Sprintf("%s %s -> %s (%s)", c.ID, c.Then, c.Now, strings.Join(c.New, ", "))
	case ChangeFlag, ChangeAlert, ChangeRunbook:
		return text + " " + heldWords(c.Then, c.Now)
	case ChangeCause:
		return c.causeText()
	case ChangeUnjudged:
		text = "not judged"
	case ChangeVerdict, ChangeListed, ChangeStuck, ChangeSuspected, ChangePlan, ChangeCheck:
	}
	then, now := c.Then, c.Now
	if c.Kind == ChangeStuck && c.ID != "" {
		then, now = sandbox.Cause(then).Label(), sandbox.Cause(now).Label()
	}
	text += " " + then + " -> " + now
	var parts []string
	if len(c.Gone) > 0 {
		parts = append(parts, "no longer "+sandbox.FormatFirst(c.Gone, fewRefs))
	}
	if len(c.New) > 0 {
		parts = append(parts, "now also "+sandbox.FormatFirst(c.New, fewRefs))
	}
	if len(parts) == 0 {
		return text
	}
	return text + ": " + strings.Join(parts, "; ")
}

func heldWords(then, now string) string {
	switch sandbox.Verdict(now) {
	case sandbox.True:
		return "holds now"
	case sandbox.False:
		if sandbox.Verdict(then) == sandbox.Unknown {
			return "does not hold now, and was not known"
		}
		return "no longer holds"
	case sandbox.Unknown:
	}
	return "is not known now"
}

// causeText has the causes by the names that people read.
func (c Change) causeText() string {
	name := triage.TheoryLabel(c.ID)
	likely := func(text string) bool {
		return text == string(sandbox.Certain) || text == string(sandbox.Probable)
	}
	switch {
	case c.ID == "":
		return "first cause " + triage.TheoryLabel(c.Then) + " -> " + triage.TheoryLabel(c.Now)
	case likely(c.Then) && !likely(c.Now):
		return "cause " + name + " no longer likely"
	case !likely(c.Then) && likely(c.Now):
		return "cause " + name + " is likely now"
	}
	return "cause " + name + " " + cmp.Or(c.Then, "absent") + " -> " + cmp.Or(c.Now, "absent")
}
