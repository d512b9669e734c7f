package selector

import (
	"slices"

	"sbx/internal/sandbox"
)

// Judged is a sandbox with its judgement.
type Judged struct {
	Sandbox sandbox.Sandbox
	Match   Match
}

// Selection is what a selector made of a list.
type Selection struct {
	Selected  []Judged       // in the selector's order, at most Limit
	Kept      []Judged       // not selected, for sure; in order of arrival
	Unknown   []Judged       // could not be judged, and so not selected; in order of arrival
	UnknownBy map[string]int // how many of those each filter left open
	Truncated bool           // Limit cut matches off; they stand in no list
}

// Apply judges, sorts and cuts. Items are not changed.
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
