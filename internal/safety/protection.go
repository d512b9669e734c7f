package safety

import (
	"time"

	"sbx/internal/sandbox"
)

// Choice is how a sandbox was selected for its end.
type Choice int

// The weaker comes first.
const (
	ByRule      Choice = iota // by a rule, or a reference from a pipe
	ByWord                    // a typed word: an id, its beginning, a name
	ByReference               // the whole reference, profile/id, was typed
)

// ByHand reports whether a person has named the sandbox.
func (c Choice) ByHand() bool { return c != ByRule }

// Protection is why a sandbox may not be ended. A nil function protects nothing.
type Protection struct {
	Now func() time.Time // nil = time.Now
	// Configured says whether the configuration protects a sandbox.
	Configured func(sandbox.Sandbox) bool
	// Leased is why a task keeps it: the task runs in it, or has kept it. byHand = a person
	// has named it.
	Leased func(s sandbox.Sandbox, byHand bool) string
}

// Keeps is why a sandbox with this choice may not be ended; "" = it may. The times of its
// labels are compared with the clock that is behind, so that a wrong clock ends no
// protection.
func (p Protection) Keeps(s sandbox.Sandbox, c Choice) string {
	if p.Now == nil {
		p.Now = time.Now
	}
	now := s.Clock(p.Now())
	if why := sandbox.Kept(s.Labels, now); why != "" {
		return why
	}
	if p.Configured != nil && p.Configured(s) {
		return "protected by the configuration"
	}
	if p.Leased != nil {
		if why := p.Leased(s, c.ByHand()); why != "" {
			return why
		}
	}
	if _, unreadable := s.Labels[sandbox.LabelUnreadable]; unreadable && !c.ByHand() {
		return "protected: its labels cannot be read, and one of them may protect it; `terminate` with its name terminates it"
	}
	if !c.ByHand() && s.KeptUntil.After(now) {
		return "protected: " + s.KeptReason() + "; `terminate` with its name terminates it"
	}
	return ""
}

// ByRule is Keeps for sandboxes that a rule has selected.
func (p Protection) ByRule(s sandbox.Sandbox) string { return p.Keeps(s, ByRule) }
