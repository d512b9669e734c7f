// Package incident keeps what people say of an incident: when it was started, acknowledged and closed,
// its title, and notes. A record is a folder with one journal, to which several processes append.
// What sbx has seen and done in that time is on record elsewhere, and ops puts both together.
//
// The package holds data and keeps it. It decides nothing about sandboxes, knows no verb, and
// prints nothing; pages and reports are in views.
package incident

import (
	"slices"
	"time"
)

// Schema is the version of a record.
const Schema = "sbx.incident/v1"

// Prefix begins the id of each incident.
const Prefix = "i-"

// Kind is what an event is about.
type Kind string

// The closed list. An entry of another kind, such as those of what verbs saw that older versions wrote,
// is left out.
const (
	Started      Kind = "started"
	Acknowledged Kind = "acknowledged"
	Noted        Kind = "note"
	Closed       Kind = "closed"
)

// Milestone is a moment of an incident that a report names.
type Milestone string

// The milestones, in their order.
const (
	MilestoneDetected     Milestone = "detected"
	MilestoneAcknowledged Milestone = "acknowledged"
	MilestoneMitigated    Milestone = "mitigated"
	MilestoneVerified     Milestone = "verified"
	MilestoneClosed       Milestone = "closed"
)

// Milestones are all milestones, in their order.
func Milestones() []Milestone {
	return []Milestone{MilestoneDetected, MilestoneAcknowledged, MilestoneMitigated, MilestoneVerified, MilestoneClosed}
}

// Resolution is how an incident ended.
type Resolution string

// The closed list.
const (
	Resolved   Resolution = "resolved"
	FalseAlarm Resolution = "false-alarm"
	Duplicate  Resolution = "duplicate"
)

// Resolutions are all resolutions.
func Resolutions() []Resolution { return []Resolution{Resolved, FalseAlarm, Duplicate} }

// State is where an incident is.
type State string

// The closed list.
const (
	Open       State = "open"
	StateEnded State = "closed"
	// Damaged is a record that cannot be trusted, or is of a newer version: nothing is added to it.
	Damaged State = "damaged"
)

// Actor is the process that wrote an event, and its user.
type Actor struct {
	Who     string `json:"who"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Start is what is known when an incident begins.
type Start struct {
	Schema     string    `json:"schema"`
	Title      string    `json:"title"`
	Runbook    string    `json:"runbook,omitempty"`
	Alert      string    `json:"alert,omitempty"`
	Severity   string    `json:"severity,omitempty"`
	Providers  []string  `json:"providers,omitempty"`
	DetectedAt time.Time `json:"detected_at,omitzero"`
	DetectedBy string    `json:"detected_by,omitempty"` // the source of DetectedAt
}

// Step is a step of a runbook that has ended, as the record of its run has it.
type Step struct {
	Run, Runbook string // its ids
	Actor        Actor  // who ran it
	ID, Title    string
	Kind         string
	State        string // done, failed or skipped
	Verdict      string // true, false, unknown; "" = it has none
	Answer       string // of a person
	Text         string // what it found, or why it was left out
	ETA, Took    time.Duration
	Began, Ended time.Time
}

// Event is one line of a record: what a person has said or decided.
type Event struct {
	Kind  Kind      `json:"-"` // the journal has it
	At    time.Time `json:"at"`
	Actor Actor     `json:"actor"`
	Text  string    `json:"text,omitempty"`

	Start     *Start     `json:"start,omitempty"`
	Milestone Milestone  `json:"milestone,omitempty"`
	As        Resolution `json:"as,omitempty"`
	Question  string     `json:"question,omitempty"` // of the runbook, that a note answers
}

// Incident is a record that was read.
type Incident struct {
	ID     string
	Start  Start
	State  State
	As     Resolution // of a closed one
	Events []Event    // as they were written

	StartedAt time.Time
	StartedBy Actor
	ClosedAt  time.Time

	// Problem is why the record ends here although more may have been written; "" = it is whole. A last line
	// that a killed process has left incomplete is none: the next event replaces it.
	Problem string
}

// replay makes the incident of its events.
func (i *Incident) replay(e Event) {
	switch e.Kind {
	case Started:
		if e.Start != nil {
			i.Start = *e.Start
		}
		i.State, i.StartedAt, i.StartedBy = Open, e.At, e.Actor
	case Closed:
		i.State, i.As, i.ClosedAt = StateEnded, e.As, e.At
	case Acknowledged, Noted:
	default:
		return
	}
	i.Events = append(i.Events, e)
}

// Has says that the record has an event of a kind.
func (i *Incident) Has(kind Kind) bool {
	return slices.ContainsFunc(i.Events, func(e Event) bool { return e.Kind == kind })
}
