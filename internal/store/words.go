package store

import (
	"time"

	"sbx/internal/sandbox"
)

// Lease is an exclusive right to a name until a time of the store's clock, which
// may differ from the clock of this host.
type Lease struct {
	Name   string
	Holder string
	Fence  int64 // grows with every Acquire of the name, from 1, and never goes back
	Until  time.Time
}

// Sighting is how often something was seen.
type Sighting struct {
	First time.Time
	Last  time.Time // the last that counted
	Count int
}

// Record is a sandbox that sbx created.
type Record struct {
	Provider  string // the profile
	ID        string
	TaskID    string
	AgentType string
	Owner     string // who asked for it
	Host      string // from where
	State     sandbox.State
	CreatedAt time.Time
	UpdatedAt time.Time
	EndedAt   time.Time // zero = no end was noted
	Reason    string    // of the end
}

// Ref names the sandbox.
func (r Record) Ref() sandbox.Ref { return sandbox.Ref{Provider: r.Provider, ID: r.ID} }

// Run is the summary of a bulk run.
type Run struct {
	ID        string
	Verb      string // "cleanup"
	Layer     string // of the lines of defence that cron runs; "" = none
	Host      string
	Who       string
	StartedAt time.Time
	EndedAt   time.Time // zero = it runs, or it was killed
	Selected  int
	Counts    map[string]int // by outcome
	ExitCode  int
	Resumable bool
	Acted     bool     // false = a dry run
	Profiles  []string // whose listing was complete and whose endings all succeeded
}
