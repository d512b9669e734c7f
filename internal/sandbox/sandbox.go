package sandbox

import (
	"maps"
	"time"
)

// Sandbox is one sandbox as its provider last described it. Zero times and nil
// numbers mean "the provider does not say", never zero.
type Sandbox struct {
	Provider     string // the profile
	ProviderType string // the kind of provider behind the profile
	ID           string
	Name         string
	State        State
	RawState     string // the provider's own word

	CreatedAt      time.Time
	StartedAt      time.Time
	FirstSeenAt    time.Time // when sbx first saw it; for providers without a creation time
	LastActivityAt time.Time
	ActivityBasis  ActivityBasis // what moves LastActivityAt
	ExpiresAt      time.Time
	EndedAt        time.Time
	Activity       Verdict // whether it shows life now; Unknown where nothing can tell

	// ClockSkew is how far the clock behind these times is ahead of this machine's, as
	// the provider's last answer showed it; 0 = they agree, or it is not known.
	ClockSkew time.Duration
	// KeptUntil is until when sbx itself keeps the sandbox on purpose, by this
	// machine's clock; zero = it does not.
	KeptUntil time.Time

	Template  string
	AgentType string
	TaskID    string
	Owner     string // whose it is, as its labels tell people
	Labels    map[string]string

	Limits Limits
	Exit   *Exit // of its program: nil while that runs, and where the provider's record keeps none
}

// Limits are what a sandbox may use. Nil means no limit is known.
type Limits struct {
	MemoryBytes *int64
	CPU         *float64 // cores
	DiskBytes   *int64
	PIDs        *int64
	Enforcement Enforcement
	Isolation   string // what separates it from the host, in the provider's words
}

// KeptReason says that sbx itself keeps the sandbox, and until when.
func (s Sandbox) KeptReason() string {
	return "sbx keeps it on purpose until " + s.KeptUntil.UTC().Format(time.RFC3339)
}

// Ref names the sandbox.
func (s Sandbox) Ref() Ref { return Ref{Provider: s.Provider, ID: s.ID} }

// Clock is the time with which the provider's times are compared when it is now on
// this machine: of the two clocks the one that is behind. It makes the sandbox younger
// and its last activity more recent, so that a wrong clock ends nothing. It is the one
// place where clocks are corrected.
func (s Sandbox) Clock(now time.Time) time.Time { return now.Add(min(0, s.ClockSkew)) }

// Age is the time since the sandbox came to be, by Clock, and what it was counted from.
// A timestamp in the future gives AgeUnknown: such an age proves nothing
// (DESIGN section 7).
func (s Sandbox) Age(now time.Time) (time.Duration, AgeSource) {
	for _, c := range []struct {
		at, now time.Time
		source  AgeSource
	}{
		{s.CreatedAt, s.Clock(now), AgeCreatedAt},
		{s.StartedAt, s.Clock(now), AgeStartedAt},
		{s.FirstSeenAt, now, AgeFirstSeen},
	} {
		if c.at.IsZero() {
			continue
		}
		if c.at.After(c.now) {
			return 0, AgeUnknown
		}
		return c.now.Sub(c.at), c.source
	}
	return 0, AgeUnknown
}

// Idle is the time since the last sign of life, by Clock; false when none is known.
func (s Sandbox) Idle(now time.Time) (time.Duration, bool) {
	now = s.Clock(now)
	if s.LastActivityAt.IsZero() || s.LastActivityAt.After(now) {
		return 0, false
	}
	return now.Sub(s.LastActivityAt), true
}

// Clone copies the sandbox so that the copy's labels may be changed.
func (s Sandbox) Clone() Sandbox {
	s.Labels = maps.Clone(s.Labels)
	return s
}

// Spec is what a new sandbox shall be. Zero values leave the choice to the
// provider.
type Spec struct {
	Name      string
	Command   []string
	Env       []string // KEY=VALUE; values reach the program and nothing else
	Template  string
	Snapshot  string
	Image     string
	Labels    map[string]string
	TaskID    string
	AgentType string

	MemoryBytes int64
	CPU         float64 // cores
	DiskBytes   int64
	PIDs        int64
	TTL         time.Duration

	// Linger keeps the sandbox when its program has ended, until its TTL or a
	// terminate. Where a sandbox always outlives its program it changes nothing.
	Linger bool

	Workdir          string
	RequireHardLimit bool
	Isolate          string // "" or the name of an isolation tool
}
