package selector

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Match is the judgement of one sandbox.
type Match struct {
	Verdict sandbox.Verdict
	Filter  string // the flag that decided, without dashes; "" when the verdict is True
	Reason  string // one line; for True, the values that each filter compared
}

// Judge decides whether the sandbox is selected. It is not when any filter is false;
// otherwise a filter that cannot be judged makes the result Unknown, which is never a
// selection.
func (s Selector) Judge(sb sandbox.Sandbox, f Facts) Match {
	var seen []string
	open := Match{Verdict: sandbox.True}
	for _, check := range s.activeChecks() {
		verdict, reason := check.holds(s, sb, f)
		switch verdict {
		case sandbox.False:
			if check.name == FilterEnded && open.Verdict == sandbox.Unknown {
				return Match{sandbox.False, open.Filter, reason} // --all would not select it
			}
			return Match{sandbox.False, check.name, reason}
		case sandbox.True:
			if reason != "" {
				seen = append(seen, reason)
			}
		default:
			if open.Verdict == sandbox.True {
				open = Match{sandbox.Unknown, check.name, reason}
			}
		}
	}
	if open.Verdict == sandbox.True {
		open.Reason = strings.Join(seen, "; ")
	}
	return open
}

// filterCheck is one filter, with its name. It has no reference to a selector: each row of a
// listing needs new checks.
type filterCheck struct {
	name  string
	holds func(Selector, sandbox.Sandbox, Facts) (sandbox.Verdict, string)
}

// activeChecks lists the filters that are set, the cheap ones first.
func (s Selector) activeChecks() []filterCheck {
	all := []struct {
		set bool
		filterCheck
	}{
		{len(s.States) > 0, filterCheck{"state", Selector.checkState}},
		{s.Task != "", filterCheck{"task", Selector.checkTask}},
		{s.AgentType != "", filterCheck{"agent-type", Selector.checkAgentType}},
		{s.Owner != "", filterCheck{"owner", Selector.checkOwner}},
		{s.Template != "", filterCheck{"template", Selector.checkTemplate}},
		{s.ExitCode != nil, filterCheck{"exit-code", Selector.checkExitCode}},
		{s.Name != "", filterCheck{"name", Selector.checkName}},
		{len(s.Labels) > 0, filterCheck{"label", Selector.checkLabels}},
		{s.OlderThan > 0, filterCheck{"older-than", Selector.checkOlder}},
		{s.YoungerThan > 0, filterCheck{"younger-than", Selector.checkYounger}},
		{!s.Before.IsZero(), filterCheck{"before", Selector.checkBefore}},
		{!s.After.IsZero(), filterCheck{"after", Selector.checkAfter}},
		{!s.Where.IsZero(), filterCheck{FilterWhere, Selector.checkWhere}},
		{!s.All, filterCheck{FilterEnded, Selector.checkEnded}},
		{s.Stuck, filterCheck{"stuck", Selector.checkStuck}},
	}
	var set []filterCheck
	for _, c := range all {
		if c.set {
			set = append(set, c.filterCheck)
		}
	}
	return set
}

// FilterEnded is Match.Filter of a sandbox that all other filters select, and that has ended.
const FilterEnded = "all"

// FilterWhere is Match.Filter where the condition decided.
const FilterWhere = "where"

// checkEnded keeps what has not ended.
func (Selector) checkEnded(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	if sb.State.Ended() {
		return sandbox.False, "it has ended: " + string(sb.State)
	}
	return sandbox.True, ""
}

func (s Selector) checkState(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	switch {
	case slices.Contains(s.States, sb.State):
		return sandbox.True, "state " + string(sb.State)
	case sb.State == sandbox.StateUnknown, sb.State == "":
		return sandbox.Unknown, fmt.Sprintf("state unknown (the provider says %q)", sb.RawState)
	}
	return sandbox.False, "state " + string(sb.State)
}

func (s Selector) checkTask(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	return sandbox.VerdictOf(sb.TaskID == s.Task), fmt.Sprintf("task %q", sb.TaskID)
}

func (s Selector) checkOwner(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	return sandbox.VerdictOf(sb.Owner == s.Owner), fmt.Sprintf("owner %q", sb.Owner)
}

func (s Selector) checkTemplate(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	return sandbox.VerdictOf(sb.Template == s.Template), fmt.Sprintf("template %q", sb.Template)
}

// checkExitCode cannot judge an ended sandbox whose exit is not reported.
func (s Selector) checkExitCode(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	switch {
	case sb.Exit != nil && sb.Exit.Code != nil:
		return sandbox.VerdictOf(*sb.Exit.Code == *s.ExitCode), fmt.Sprintf("exit code %d", *sb.Exit.Code)
	case sb.State.Ended():
		return sandbox.Unknown, "exit code unknown: the provider does not report it"
	}
	return sandbox.False, "no exit code: its program has not ended"
}

func (s Selector) checkAgentType(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	return sandbox.VerdictOf(sb.AgentType == s.AgentType), fmt.Sprintf("agent type %q", sb.AgentType)
}

func (s Selector) checkName(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	ok, err := path.Match(withoutSlashes(s.Name), withoutSlashes(sb.Name))
	if err != nil {
		return sandbox.Unknown, fmt.Sprintf("the pattern %q is broken", s.Name)
	}
	return sandbox.VerdictOf(ok), fmt.Sprintf("name %q", sb.Name)
}

// withoutSlashes hides slashes from path.Match: a name is no path, and * matches all of it.
func withoutSlashes(text string) string { return strings.ReplaceAll(text, "/", "\x00") }

func (s Selector) checkLabels(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	var seen []string
	for _, l := range s.Labels {
		value, present := sb.Labels[l.Key]
		switch {
		case !present:
			return sandbox.False, fmt.Sprintf("no label %q", l.Key)
		case len(l.Values) > 0 && !slices.Contains(l.Values, value):
			return sandbox.False, fmt.Sprintf("label %q is %q", l.Key, value)
		}
		seen = append(seen, fmt.Sprintf("label %s=%q", l.Key, value))
	}
	return sandbox.True, strings.Join(seen, "; ")
}

func (Selector) checkStuck(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	if f.Judged == nil {
		return sandbox.Unknown, "no source can decide what is stuck"
	}
	v, _ := f.Judged(sb)
	return v.Stuck, v.Reason
}

// checkOlder is strict: a sandbox of exactly the limit is not older. An age since the first
// sight is a lower bound, so it decides in one direction only.
func (s Selector) checkOlder(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	age, source := sb.Age(f.Now)
	switch {
	case source == sandbox.AgeUnknown:
		return sandbox.Unknown, noAge(sb, f.Now)
	case age > s.OlderThan:
		return sandbox.True, "age " + sandbox.FormatDuration(age) + " over " + sandbox.FormatDuration(s.OlderThan)
	case source == sandbox.AgeFirstSeen:
		return sandbox.Unknown, "first seen " + sandbox.FormatDuration(age) + " ago; its real age is unknown"
	}
	return sandbox.False, "age " + sandbox.FormatDuration(age) + " not over " + sandbox.FormatDuration(s.OlderThan)
}

// checkYounger is strict, and needs a real age: the first sight is no upper bound.
func (s Selector) checkYounger(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	age, source := sb.Age(f.Now)
	switch {
	case source == sandbox.AgeUnknown:
		return sandbox.Unknown, noAge(sb, f.Now)
	case age >= s.YoungerThan:
		return sandbox.False, "age " + sandbox.FormatDuration(age) + " not under " + sandbox.FormatDuration(s.YoungerThan)
	case source == sandbox.AgeFirstSeen:
		return sandbox.Unknown, "first seen " + sandbox.FormatDuration(age) + " ago; its real age is unknown"
	}
	return sandbox.True, "age " + sandbox.FormatDuration(age) + " under " + sandbox.FormatDuration(s.YoungerThan)
}

// checkBefore and checkAfter compare the time of creation.
func (s Selector) checkBefore(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	return compareCreation(sb, f, func(born time.Time) bool { return born.Before(s.Before) }, sandbox.True)
}

func (s Selector) checkAfter(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	return compareCreation(sb, f, func(born time.Time) bool { return born.After(s.After) }, sandbox.False)
}

// compareCreation judges the time of creation. The first sight proves that the sandbox
// existed by then, not that it did not exist before: proved is the only verdict that it
// allows.
func compareCreation(sb sandbox.Sandbox, f Facts, fits func(born time.Time) bool, proved sandbox.Verdict) (sandbox.Verdict, string) {
	age, source := sb.Age(f.Now)
	if source == sandbox.AgeUnknown {
		return sandbox.Unknown, noAge(sb, f.Now)
	}
	born := f.Now.Add(-age)
	verdict := sandbox.VerdictOf(fits(born))
	if source == sandbox.AgeFirstSeen && verdict != proved {
		return sandbox.Unknown, "first seen " + sandbox.FormatDuration(age) + " ago; its real age is unknown"
	}
	return verdict, "exists since " + born.UTC().Format(time.RFC3339)
}

func noAge(sb sandbox.Sandbox, now time.Time) string {
	for _, at := range []time.Time{sb.CreatedAt, sb.StartedAt, sb.FirstSeenAt} {
		if at.After(now) {
			return "age unknown: its creation time is in the future"
		}
	}
	return "age unknown: the provider does not report it"
}
