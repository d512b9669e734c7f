package cleanup

import (
	"slices"
	"time"

	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

// DefaultIdleFor is how long a running sandbox must have been silent (DESIGN
// section 3, Timers: inactivity).
const DefaultIdleFor = 60 * time.Second

// Rule says which sandboxes a run is about, as the operator asked for it.
type Rule struct {
	Selector        selector.Selector `json:"selector"`
	FailedOlderThan time.Duration     `json:"failed_older_than_ns,omitempty"` // the age for failed ones instead of Selector.OlderThan; 0 = none
	IdleFor         time.Duration     `json:"idle_for_ns,omitempty"`          // silence that a running one needs; 0 = DefaultIdleFor
	IgnoreActivity  bool              `json:"ignore_activity,omitempty"`      // age alone is enough
	IncludePaused   bool              `json:"include_paused,omitempty"`
	IncludeFailed   bool              `json:"include_failed,omitempty"`   // also failed ones that stay at their provider, of any age unless FailedOlderThan says one
	Unowned         bool              `json:"unowned,omitempty"`          // also those that are not ours
	Unhealthy       bool              `json:"unhealthy,omitempty"`        // only those that do not answer (ACCEPTANCE R138)
	NotifyBefore    time.Duration     `json:"notify_before_ns,omitempty"` // how long before it goes a sandbox must have been noticed; 0 = not at all
	Delete          bool              `json:"delete,omitempty"`           // also destroy what the provider would keep
}

// Chooses says that the rule names sandboxes at all.
func (r Rule) Chooses() bool {
	return !r.Selector.Empty() || r.FailedOlderThan > 0 || r.Unhealthy
}

// selector is what a sandbox of this state is held against: one that failed has an age
// of its own. False = the rule is not about this state at all.
func (r Rule) selector(state sandbox.State) (selector.Selector, bool) {
	s := r.Selector
	s.All = true // nothing is hidden from a guard
	if state == sandbox.StateFailed && r.IncludeFailed {
		s.Stuck, s.OlderThan = false, max(r.FailedOlderThan, time.Nanosecond) // of any age, but of a known one
		return s, true
	}
	if r.FailedOlderThan == 0 {
		return s, true
	}
	if state != sandbox.StateFailed {
		return s, !r.Selector.Empty() || r.Unhealthy
	}
	s.OlderThan = r.FailedOlderThan
	return s, true
}

// Profile is what the configuration says of one profile.
type Profile struct {
	Name      string
	Owns      func(labels map[string]string) bool // nil = all
	OwnedRule string                              // in words: "sbx/owner=*"
	// Undecided says that nobody has configured whose the sandboxes are. Those that are
	// not ours are then judged to the end, so that a run can say what it leaves.
	Undecided bool
}

// World is everything outside: nothing is read ambiently.
type World struct {
	Now      func() time.Time
	Profiles []Profile
	Limits   safety.Limits
	// FirstSeen is when an earlier run first saw a sandbox that tells no age, and
	// Noticed when one first held it for a candidate; zero = never. Nil = never.
	FirstSeen  func(sandbox.Sandbox) time.Time
	Noticed    func(sandbox.Sandbox) time.Time
	Protected  func(sandbox.Sandbox) string            // why a rule may not end it (safety.Protection.ByRule); "" = it may
	Thresholds func(sandbox.Sandbox) triage.Thresholds // of its profile and agent type

	endsFailed func(profile string) bool // fleet.EndsFailed; nil = no profile does
}

// ends says that a failed sandbox of a profile can be ended without --delete.
func (w World) ends(profile string) bool { return w.endsFailed != nil && w.endsFailed(profile) }

func (w World) profile(name string) Profile {
	i := slices.IndexFunc(w.Profiles, func(p Profile) bool { return p.Name == name })
	if i < 0 {
		return Profile{Name: name, Owns: func(map[string]string) bool { return false }}
	}
	return w.Profiles[i]
}

// aged gives a sandbox that tells no age the time at which an earlier run saw it: a
// lower bound, and so never a reason to call it young.
func (w World) aged(s sandbox.Sandbox) sandbox.Sandbox {
	if w.FirstSeen != nil && s.CreatedAt.IsZero() && s.StartedAt.IsZero() && s.FirstSeenAt.IsZero() {
		s.FirstSeenAt = w.FirstSeen(s)
	}
	return s
}

func (p Profile) owns(labels map[string]string) bool { return p.Owns == nil || p.Owns(labels) }
