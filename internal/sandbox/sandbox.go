// Package sandbox defines the terms of sbx: what a sandbox is, the states and outcomes, the
// formats of ages, durations and sizes, and how a sandbox is named.
//
// The lists are closed: code, JSON, docs and tests use these spellings and no others. The
// package reads no file, clock, network or environment, and imports only the standard library.
package sandbox

import (
	"maps"
	"time"
)

// Sandbox is one sandbox as its provider last described it. Zero times and nil numbers mean
// "not reported", never zero.
type Sandbox struct {
	Provider     string // the profile
	ProviderType string // the kind of provider behind the profile
	ID           string
	Name         string
	State        State
	RawState     string // the provider's own state

	CreatedAt      time.Time
	StartedAt      time.Time
	FirstSeenAt    time.Time // when sbx first saw it; for providers without a creation time
	LastActivityAt time.Time
	ActivityBasis  ActivityBasis // what moves LastActivityAt
	ExpiresAt      time.Time
	EndingAt       time.Time // when its end began, by its provider; zero where it is not reported
	EndsBy         time.Time // while it is terminating: when its own grace is over, by its provider; zero where it is not reported
	EndingSeenAt   time.Time // the first look of sbx since which every complete listing has shown it as terminating; zero = none
	EndedAt        time.Time
	IdleStop       time.Duration // after this time without activity its provider stops it; 0 = it does not, or it is not reported
	Activity       Verdict       // whether it shows life now; Unknown without a source

	// ClockSkew is how far the clock of these times is ahead of this machine's, by the
	// provider's last answer; 0 = they agree, or it is not known.
	ClockSkew time.Duration
	// KeptUntil is the time until which sbx itself keeps the sandbox on purpose, by this
	// machine's clock; zero = it does not.
	KeptUntil time.Time

	Node      string // the machine that it runs on, by its provider; "" where it is not reported
	Template  string
	AgentType string
	TaskID    string
	Owner     string // from its labels, shown to people
	Labels    map[string]string
	// Command is the program and its arguments, nil where the provider's record has none. A
	// listing may leave it out.
	Command []string

	// EndNote is what a plan has to say of an end without a delete: "its restart policy is always"; "" = nothing.
	EndNote string

	Limits Limits
	Exit   *Exit // of its program: nil while it runs, and where the provider's record has none
	// Troubles are what its provider reports to be wrong with one that has not ended.
	Troubles []Trouble
}

// Trouble is something that a provider reports to be wrong with a sandbox, by its record alone: it is no reason to end it.
type Trouble struct {
	ID         string // of the rule: "restarts"
	Say        string // "its main program was killed for memory and started again (41 restarts)"
	Cause      Cause
	Confidence Confidence
	Evidence   []Evidence
}

// Limits are what a sandbox may use. Nil means no limit is known.
type Limits struct {
	MemoryBytes *int64
	CPU         *float64 // cores
	DiskBytes   *int64
	PIDs        *int64
	Enforcement Enforcement
	Isolation   string // from the host, as the provider calls it
}

// KeptReason says until when sbx itself keeps the sandbox.
func (s Sandbox) KeptReason() string {
	return "sbx keeps it on purpose until " + s.KeptUntil.UTC().Format(time.RFC3339)
}

// Failed reports whether it failed, or its program did not end well.
func (s Sandbox) Failed() bool {
	return s.State == StateFailed || s.Exit != nil && s.Exit.Class != ClassOK
}

// Ref is the reference of the sandbox.
func (s Sandbox) Ref() Ref { return Ref{Provider: s.Provider, ID: s.ID} }

// Clock returns the time for comparisons with the provider's times: of this machine's and the
// provider's clock the one that is behind. It makes the sandbox younger and its last activity
// more recent, so that a wrong clock ends nothing. Clocks are corrected only here.
func (s Sandbox) Clock(now time.Time) time.Time { return now.Add(min(0, s.ClockSkew)) }

// Age is the time since the creation of the sandbox, by Clock, and the timestamp that was
// used. A timestamp in the future gives AgeUnknown: such an age proves nothing.
func (s *Sandbox) Age(now time.Time) (time.Duration, AgeSource) {
	at, source := s.Born()
	if at.IsZero() || at.After(now) {
		return 0, AgeUnknown
	}
	return now.Sub(at), source
}

// Born is when the sandbox was created by the clock of this machine, which Clock compares with its own, and the
// timestamp that was used; zero = not known. It may be in the future.
func (s *Sandbox) Born() (time.Time, AgeSource) {
	at, source := s.CreatedAt, AgeCreatedAt
	if at.IsZero() {
		at, source = s.StartedAt, AgeStartedAt
	}
	switch {
	case !at.IsZero():
		return at.Add(-min(0, s.ClockSkew)), source
	case s.FirstSeenAt.IsZero():
		return time.Time{}, AgeUnknown
	}
	return s.FirstSeenAt, AgeFirstSeen
}

// Ending is how long the sandbox has been terminating, and the timestamp that was used: "ending_at" of its
// provider, else "first_seen", a lower bound. AgeUnknown where neither is known, or is in the future.
func (s Sandbox) Ending(now time.Time) (time.Duration, AgeSource) {
	at, source, now := s.EndingAt, AgeEndingAt, s.Clock(now)
	if at.IsZero() {
		at, source = s.EndingSeenAt, AgeFirstSeen
	}
	if at.IsZero() || at.After(now) {
		return 0, AgeUnknown
	}
	return now.Sub(at), source
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

// Spec describes a new sandbox. Zero values are the provider's defaults.
type Spec struct {
	Name      string
	Command   []string
	Env       []string // KEY=VALUE; values reach only the program
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

	// KeepAfterExit keeps the sandbox when its program has ended, until its TTL or a terminate. It
	// has no effect where a sandbox always outlives its program.
	KeepAfterExit bool

	// Tied ends and removes the sandbox when the process that creates it is gone. Only `local` can, and whatever reads
	// it next does.
	Tied bool

	Workdir          string
	RequireHardLimit bool
	Isolate          string // "" or the name of an isolation tool
}
