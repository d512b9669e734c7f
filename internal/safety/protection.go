package safety

import (
	"time"

	"sbx/internal/sandbox"
)

// Choice is how a sandbox came to be among those that are to end.
type Choice int

// What is weaker stands first.
const (
	ByRule      Choice = iota // a rule, or a reference that a pipe brought
	ByWord                    // a bare word that was typed: an id, its beginning, a name
	ByReference               // the whole reference, profile/id, that was typed
)

// ByHand says that a person has named the sandbox.
func (c Choice) ByHand() bool { return c != ByRule }

// Protection says why nobody may end a sandbox. Without a part, that part keeps nothing.
type Protection struct {
	Now func() time.Time // nil = time.Now
	// Configured says that the configuration protects it.
	Configured func(sandbox.Ref, map[string]string) bool
	// Leased says why a task keeps it: it is at work in it, or has kept it. byHand = a
	// person has named it.
	Leased func(s sandbox.Sandbox, byHand bool) string
}

// Keeps is why a sandbox may not be ended that was chosen in this way; "" = it may. The
// times of its labels are compared with the clock that is behind, so that a wrong clock
// ends no protection.
func (p Protection) Keeps(s sandbox.Sandbox, c Choice) string {
	now := s.Clock(p.now())
	if why := sandbox.Kept(s.Labels, now); why != "" {
		return why
	}
	if p.Configured != nil && p.Configured(s.Ref(), s.Labels) {
		return "protected: the configuration says so"
	}
	if p.Leased != nil {
		if why := p.Leased(s, c.ByHand()); why != "" {
			return why
		}
	}
	if !c.ByHand() && s.KeptUntil.After(now) {
		return "protected: " + s.KeptReason() + "; named by hand it ends"
	}
	return ""
}

// ByRule is Keeps for what a rule has chosen.
func (p Protection) ByRule(s sandbox.Sandbox) string { return p.Keeps(s, ByRule) }

func (p Protection) now() time.Time {
	if p.Now == nil {
		return time.Now()
	}
	return p.Now()
}
