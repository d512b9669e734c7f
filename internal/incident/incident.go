// Package incident reads what earlier versions kept of incidents: a folder each, with one journal that
// has the start, acknowledgements, notes and the end. Nothing is written here any more: an incident is
// a run of a runbook or a span of time, and notes are in the store (package history).
package incident

import "time"

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
)

// Milestones are all milestones, in their order.
func Milestones() []Milestone {
	return []Milestone{MilestoneDetected, MilestoneAcknowledged, MilestoneMitigated, MilestoneVerified}
}

// Actor is the process that wrote an event, and its user.
type Actor struct {
	Who     string `json:"who"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Start is what was known when an incident began.
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

// Event is what a person has said or decided: one line of a record, or a note.
type Event struct {
	Kind  Kind      `json:"-"` // the journal has it
	At    time.Time `json:"at"`
	Actor Actor     `json:"actor"`
	Text  string    `json:"text,omitempty"`

	Start     *Start    `json:"start,omitempty"`
	Milestone Milestone `json:"milestone,omitempty"`
	As        string    `json:"as,omitempty"`       // how it ended
	Question  string    `json:"question,omitempty"` // of the runbook, that a note answers
}

// Incident is a record that was read.
type Incident struct {
	ID     string
	Start  Start
	Events []Event // as they were written

	StartedAt time.Time // zero where the start cannot be read
	StartedBy Actor
	ClosedAt  time.Time // zero = it was never closed

	// Problem is why the record ends here although more may have been written; "" = it is whole. A last line
	// that a killed process has left incomplete is none.
	Problem string
}

// replay makes the incident of its events.
func (i *Incident) replay(e Event) {
	switch e.Kind {
	case Started:
		if e.Start != nil {
			i.Start = *e.Start
		}
		i.StartedAt, i.StartedBy = e.At, e.Actor
	case Closed:
		i.ClosedAt = e.At
	case Acknowledged, Noted:
	default:
		return
	}
	i.Events = append(i.Events, e)
}
