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
	Reason  string // one line; for True, what each filter saw
}

// Judge says whether the sandbox is selected. A filter that is false makes the
// whole false; otherwise a filter that cannot be judged makes it Unknown, which
// is never a selection (DESIGN section 7).
func (s Selector) Judge(sb sandbox.Sandbox, f Facts) Match {
	var seen []string
	open := Match{Verdict: sandbox.True}
	for _, check := range s.checks() {
		verdict, reason := check.holds(s, sb, f)
		switch verdict {
		case sandbox.False:
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

// check is one filter: what it is called and how it judges. It holds nothing of a
// selector, since every row of a listing asks for its checks anew.
type check struct {
	name  string
	holds func(Selector, sandbox.Sandbox, Facts) (sandbox.Verdict, string)
}

// checks lists the filters that are set, the cheap ones first.
func (s Selector) checks() []check {
	all := []struct {
		set bool
		check
	}{
		{!s.All, check{"all", Selector.recent}},
		{len(s.States) > 0, check{"state", Selector.inState}},
		{s.Task != "", check{"task", Selector.ofTask}},
		{s.AgentType != "", check{"agent-type", Selector.ofAgentType}},
		{s.Owner != "", check{"owner", Selector.ofOwner}},
		{s.Name != "", check{"name", Selector.named}},
		{len(s.Labels) > 0, check{"label", Selector.labelled}},
		{s.OlderThan > 0, check{"older-than", Selector.older}},
		{s.YoungerThan > 0, check{"younger-than", Selector.younger}},
		{!s.Before.IsZero(), check{"before", Selector.before}},
		{!s.After.IsZero(), check{"after", Selector.after}},
		{s.Stuck, check{"stuck", Selector.stuck}},
	}
	var set []check
	for _, c := range all {
		if c.set {
			set = append(set, c.check)
		}
	}
	return set
}

// recent keeps what has not ended, and what ended within HideEndedAfter. An
// ended sandbox without an end time is shown: hiding needs proof.
func (Selector) recent(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	hides := f.HidesEnded != nil && f.HidesEnded(sb)
	if !hides || !sb.State.Ended() || sb.EndedAt.IsZero() || f.Now.Sub(sb.EndedAt) <= HideEndedAfter {
		return sandbox.True, ""
	}
	return sandbox.False, fmt.Sprintf("ended %s ago", sandbox.FormatDuration(f.Now.Sub(sb.EndedAt)))
}

func (s Selector) inState(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	switch {
	case slices.Contains(s.States, sb.State):
		return sandbox.True, "state " + string(sb.State)
	case sb.State == sandbox.StateUnknown, sb.State == "":
		return sandbox.Unknown, fmt.Sprintf("state unknown (the provider says %q)", sb.RawState)
	}
	return sandbox.False, "state " + string(sb.State)
}

func (s Selector) ofTask(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	return sandbox.VerdictOf(sb.TaskID == s.Task), fmt.Sprintf("task %q", sb.TaskID)
}

func (s Selector) ofOwner(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	return sandbox.VerdictOf(sb.Owner == s.Owner), fmt.Sprintf("owner %q", sb.Owner)
}

func (s Selector) ofAgentType(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	return sandbox.VerdictOf(sb.AgentType == s.AgentType), fmt.Sprintf("agent type %q", sb.AgentType)
}

func (s Selector) named(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
	ok, err := path.Match(flat(s.Name), flat(sb.Name))
	if err != nil {
		return sandbox.Unknown, fmt.Sprintf("the pattern %q is broken", s.Name)
	}
	return sandbox.VerdictOf(ok), fmt.Sprintf("name %q", sb.Name)
}

// flat takes the slashes out of path.Match's sight: a name is no path, and *
// shall match all of it.
func flat(text string) string { return strings.ReplaceAll(text, "/", "\x00") }

func (s Selector) labelled(sb sandbox.Sandbox, _ Facts) (sandbox.Verdict, string) {
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

func (Selector) stuck(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	if f.Stuck == nil {
		return sandbox.Unknown, "nothing here can tell what is stuck"
	}
	return f.Stuck(sb)
}

// older is strict: a sandbox of exactly the limit is not older (ACCEPTANCE
// conflict f). An age counted from the first sight is a lower bound, so only
// the side that it proves is decided.
func (s Selector) older(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	age, source := sb.Age(f.Now)
	switch {
	case source == sandbox.AgeUnknown:
		return sandbox.Unknown, noAge(sb, f.Now)
	case age > s.OlderThan:
		return sandbox.True, "age " + sandbox.FormatDuration(age) + " over " + sandbox.FormatDuration(s.OlderThan)
	case source == sandbox.AgeFirstSeen:
		return sandbox.Unknown, "first seen " + sandbox.FormatDuration(age) + " ago, its real age is not known"
	}
	return sandbox.False, "age " + sandbox.FormatDuration(age) + " not over " + sandbox.FormatDuration(s.OlderThan)
}

// younger is strict, and needs a real age: first sight proves no upper bound.
func (s Selector) younger(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	age, source := sb.Age(f.Now)
	switch {
	case source == sandbox.AgeUnknown:
		return sandbox.Unknown, noAge(sb, f.Now)
	case age >= s.YoungerThan:
		return sandbox.False, "age " + sandbox.FormatDuration(age) + " not under " + sandbox.FormatDuration(s.YoungerThan)
	case source == sandbox.AgeFirstSeen:
		return sandbox.Unknown, "first seen " + sandbox.FormatDuration(age) + " ago, its real age is not known"
	}
	return sandbox.True, "age " + sandbox.FormatDuration(age) + " under " + sandbox.FormatDuration(s.YoungerThan)
}

// before and after go by when the sandbox came to be.
func (s Selector) before(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	return since(sb, f, func(born time.Time) bool { return born.Before(s.Before) }, sandbox.True)
}

func (s Selector) after(sb sandbox.Sandbox, f Facts) (sandbox.Verdict, string) {
	return since(sb, f, func(born time.Time) bool { return born.After(s.After) }, sandbox.False)
}

// since judges when a sandbox came to be. First sight proves that it was there by
// then, and never that it was not before: proved is the one verdict that it allows.
func since(sb sandbox.Sandbox, f Facts, fits func(born time.Time) bool, proved sandbox.Verdict) (sandbox.Verdict, string) {
	age, source := sb.Age(f.Now)
	if source == sandbox.AgeUnknown {
		return sandbox.Unknown, noAge(sb, f.Now)
	}
	born := f.Now.Add(-age)
	verdict := sandbox.VerdictOf(fits(born))
	if source == sandbox.AgeFirstSeen && verdict != proved {
		return sandbox.Unknown, "first seen " + sandbox.FormatDuration(age) + " ago, its real age is not known"
	}
	return verdict, "there since " + born.UTC().Format(time.RFC3339)
}

func noAge(sb sandbox.Sandbox, now time.Time) string {
	for _, at := range []time.Time{sb.CreatedAt, sb.StartedAt, sb.FirstSeenAt} {
		if at.After(now) {
			return "age unknown: its time lies in the future"
		}
	}
	return "age unknown: the provider does not say"
}
