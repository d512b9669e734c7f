// Package selector decides which sandboxes a verb selects. Every command with selectors
// uses it, so that ls shows exactly what cleanup would end.
//
// It holds pure rules: flag texts are compiled once into a Selector, a Selector judges one
// sandbox at a time, and what it cannot judge is unknown with a reason, never a match.
// Providers, clocks and output do not belong here, and the stuck rule is passed in.
package selector

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Selector is a compiled selection of sandboxes. Filters of different kinds must all hold;
// several states, or several values of one label, are alternatives. The zero Selector
// matches everything that has not ended. Build it with Compile, which checks it.
type Selector struct {
	States      []sandbox.State `json:"states,omitempty"`
	OlderThan   time.Duration   `json:"older_than_ns,omitempty"`   // strictly older; 0 = no filter
	YoungerThan time.Duration   `json:"younger_than_ns,omitempty"` // strictly younger; 0 = no filter
	Before      time.Time       `json:"before,omitzero"`           // created before; zero = no filter
	After       time.Time       `json:"after,omitzero"`            // created after; zero = no filter
	Labels      []Label         `json:"labels,omitempty"`
	Name        string          `json:"name,omitempty"`       // glob, see Options.Name; "" = no filter
	Task        string          `json:"task,omitempty"`       // exact task id; "" = no filter
	AgentType   string          `json:"agent_type,omitempty"` // exact; "" = no filter
	Owner       string          `json:"owner,omitempty"`      // exact, by labels; "" = no filter
	Template    string          `json:"template,omitempty"`   // exact; "" = no filter
	ExitCode    *int            `json:"exit_code,omitempty"`  // of its program; nil = no filter
	Where       Where           `json:"where,omitzero"`
	Stuck       bool            `json:"stuck,omitempty"` // only what the stuck rule finds stuck
	All         bool            `json:"all,omitempty"`   // also ended sandboxes
	Limit       int             `json:"limit,omitempty"` // maximum number; 0 = no limit
	Sort        Order           `json:"sort,omitzero"`
}

// Label asks for one label of a sandbox.
type Label struct {
	Key    string   `json:"key"`
	Values []string `json:"values,omitempty"` // alternatives; none = the key must be present, with any value
}

// Facts are what a judgement needs beside the sandbox.
type Facts struct {
	Now time.Time
	// Judged is the judgement of a sandbox, and its usage as a look told it; nil = nobody
	// looked. Without it the stuck filter is always unknown, and conditions use the record.
	Judged func(sandbox.Sandbox) (triage.Verdict, *Figures)
}

// Empty reports whether the selector has no filter. All, Limit and Sort are no filters.
func (s Selector) Empty() bool {
	return len(s.States) == 0 && s.OlderThan == 0 && s.YoungerThan == 0 && s.Before.IsZero() && s.After.IsZero() && len(s.Labels) == 0 &&
		s.Name == "" && s.Task == "" && s.AgentType == "" && s.Owner == "" && s.Template == "" && s.ExitCode == nil && s.Where.IsZero() && !s.Stuck
}

// ExactLabels are the labels with exactly one value, for providers that can filter a
// listing.
func (s Selector) ExactLabels() map[string]string {
	exact := map[string]string{}
	for _, l := range s.Labels {
		if len(l.Values) == 1 {
			exact[l.Key] = l.Values[0]
		}
	}
	return exact
}

// Judged is a sandbox with its judgement.
type Judged struct {
	Sandbox sandbox.Sandbox
	Match   Match
}

// Selection is the result of a selector for a list.
type Selection struct {
	Selected  []Judged       // in the selector's order, at most Limit
	Kept      []Judged       // certainly not selected; in order of arrival
	Unknown   []Judged       // not decidable, and so not selected; in order of arrival
	UnknownBy map[string]int // how many of those each filter left undecided
	Truncated bool           // Limit cut matches off; they are in no list
}

// Apply judges, sorts and limits. Items are not changed.
func (s Selector) Apply(items []sandbox.Sandbox, f Facts) Selection {
	out := Selection{UnknownBy: map[string]int{}}
	for _, sb := range items {
		j := Judged{sb, s.Judge(sb, f)}
		switch j.Match.Verdict {
		case sandbox.True:
			out.Selected = append(out.Selected, j)
		case sandbox.False:
			out.Kept = append(out.Kept, j)
		default:
			out.Unknown = append(out.Unknown, j)
			out.UnknownBy[j.Match.Filter]++
		}
	}
	slices.SortStableFunc(out.Selected, func(a, b Judged) int { return s.Sort.Compare(a.Sandbox, b.Sandbox, f.Now) })
	if s.Limit > 0 && len(out.Selected) > s.Limit {
		out.Selected, out.Truncated = out.Selected[:s.Limit], true
	}
	return out
}

// Order is the order of a list. The zero Order is the order of arrival.
type Order struct {
	Key        string `json:"key"` // one of SortKeys
	Descending bool   `json:"descending,omitempty"`
}

// SortKeys lists the keys of --sort. Ages and idle times rise from young to old; states are
// in the order of a sandbox's life.
func SortKeys() []string { return []string{"age", "name", "state", "provider", "idle", "id"} }

// ParseOrder parses a sort key, with a minus before it for falling order. Any other text,
// also the empty one, is fault.KindUsage.
func ParseOrder(text string) (Order, error) {
	key, falling := strings.CutPrefix(text, "-")
	if !slices.Contains(SortKeys(), key) {
		return Order{}, fault.Usage("no sort key %q", text).WithHint("%s", fault.Meant(key, SortKeys()))
	}
	return Order{Key: key, Descending: falling}, nil
}

// Arrange sorts items in place, as of now, by Compare.
func (o Order) Arrange(items []sandbox.Sandbox, now time.Time) {
	slices.SortStableFunc(items, func(a, b sandbox.Sandbox) int { return o.Compare(a, b, now) })
}

// Compare orders two sandboxes as of now, negative when a comes first. One without a value
// for the key (an unknown age, no activity) comes last in either direction; equal ones are
// ordered by reference. The zero Order makes all equal.
func (o Order) Compare(a, b sandbox.Sandbox, now time.Time) int {
	if o.Key == "" {
		return 0
	}
	x, knownX := o.sortValue(a, now)
	y, knownY := o.sortValue(b, now)
	byKey := cmp.Compare(stateRank(knownX), stateRank(knownY))
	if knownX && knownY {
		byKey = cmp.Or(cmp.Compare(x.number, y.number), strings.Compare(x.text, y.text))
		if o.Descending {
			byKey = -byKey
		}
	}
	return cmp.Or(byKey, strings.Compare(a.Ref().String(), b.Ref().String()))
}

func stateRank(known bool) int {
	if known {
		return 0
	}
	return 1
}

// orderValue is what is compared: a number or a text, by key.
type orderValue struct {
	number int64
	text   string
}

func (o Order) sortValue(sb sandbox.Sandbox, now time.Time) (orderValue, bool) {
	switch o.Key {
	case "age":
		age, source := sb.Age(now)
		return orderValue{number: int64(age)}, source != sandbox.AgeUnknown
	case "idle":
		idle, known := sb.Idle(now)
		return orderValue{number: int64(idle)}, known
	case "state":
		at := slices.Index(sandbox.States(), sb.State)
		return orderValue{number: int64(at)}, at >= 0 && sb.State != sandbox.StateUnknown
	case "name":
		return orderValue{text: sb.Name}, sb.Name != ""
	case "provider":
		return orderValue{text: sb.Provider}, true
	}
	return orderValue{text: sb.ID}, true
}
