// Package incident is the record of an incident: who saw, said and did what, and when. A record is
// a folder with a journal of events, to which several processes append, and with snapshots beside
// it.
//
// The package holds data and keeps it. It decides nothing about sandboxes, knows no verb, and
// prints nothing; pages and reports are in views.
package incident

import (
	"strings"
	"time"

	"sbx/internal/sandbox"
)

// Schema is the version of a record.
const Schema = "sbx.incident/v1"

// Prefix begins the id of each incident.
const Prefix = "i-"

// Kind is what an event is about.
type Kind string

// The closed list of this version. One of a newer version is kept as it is.
const (
	Started      Kind = "started"
	Acknowledged Kind = "acknowledged"
	Noted        Kind = "note"
	Seen         Kind = "seen"     // a verb has looked
	Acted        Kind = "acted"    // a verb has terminated or changed something
	Verified     Kind = "verified" // all targets are met
	Stepped      Kind = "step"     // a step of a runbook has ended
	Snapshotted  Kind = "snapshot"
	Escalated    Kind = "escalated" // people were notified
	Redacted     Kind = "redacted"  // the record was rewritten
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

// Figure is a number that a verb has seen. One that it could not read is nil.
type Figure struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"`
}

// Look is a count of all sandboxes of some providers. A verb may look more than once.
type Look struct {
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"` // what has counted; figures of two kinds are not compared
	Providers []string  `json:"providers"`
	Figures   []Figure  `json:"figures"`
}

// Cause is a cause that a diagnosis has ranked.
type Cause struct {
	ID         string             `json:"id"`
	Title      string             `json:"title"`
	Confidence sandbox.Confidence `json:"confidence"`
	Score      float64            `json:"score"`
	Coverage   float64            `json:"coverage"`
	Evidence   []sandbox.Evidence `json:"evidence,omitempty"`
	WhyNot     string             `json:"why_not,omitempty"`
}

// Check is a statement and whether it is true: a flag of a diagnosis, or a target of verify with
// its figure.
type Check struct {
	ID       string             `json:"id"`
	Title    string             `json:"title"`
	Verdict  sandbox.Verdict    `json:"verdict"`
	Severity string             `json:"severity,omitempty"`
	Value    string             `json:"value,omitempty"`
	Target   string             `json:"target,omitempty"`
	Evidence []sandbox.Evidence `json:"evidence,omitempty"`
}

// Act is what a verb did to one sandbox, or to its record.
type Act struct {
	Ref     string `json:"ref"`
	Name    string `json:"name,omitempty"`
	Action  string `json:"action"`
	Reason  string `json:"reason,omitempty"`
	Outcome string `json:"outcome,omitempty"` // "" = not known
	Run     string `json:"run_id,omitempty"`
}

// Step is a step of a runbook that has ended, as its run records it.
type Step struct {
	Run     string        `json:"run_id"` // of the runbook
	Runbook string        `json:"runbook"`
	ID      string        `json:"id"`
	Title   string        `json:"title"`
	Kind    string        `json:"kind"`
	State   string        `json:"state"`             // done, failed, skipped, not_selected ...
	Verdict string        `json:"verdict,omitempty"` // true, false, unknown; "" = it has none
	Answer  string        `json:"answer,omitempty"`  // of a person
	Text    string        `json:"text,omitempty"`    // what it found, or why it was left out
	ETA     time.Duration `json:"eta_ns"`
	Took    time.Duration `json:"took_ns"`
	Began   time.Time     `json:"began,omitzero"`
	Ended   time.Time     `json:"ended,omitzero"`
}

// Snapshot is a file beside the journal.
type Snapshot struct {
	Name   string `json:"name"` // what it holds: diagnose.json
	File   string `json:"file"` // below the folder of the incident
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Message is a notification that was sent, or could not be.
type Message struct {
	Kind     string   `json:"kind"`
	Alert    string   `json:"alert,omitempty"`
	Severity string   `json:"severity,omitempty"`
	Level    string   `json:"level,omitempty"` // who acts first
	To       []string `json:"to,omitempty"`    // the services that got it
	Error    string   `json:"error,omitempty"` // why it was not sent
}

// Redaction is a rewriting of the record.
type Redaction struct {
	Patterns int `json:"patterns"` // how many were given; the patterns may be secrets themselves
	Secrets  int `json:"secrets"`  // how many secrets of the configuration were looked for
	Places   int `json:"places"`   // how many were replaced
	Events   int `json:"events"`   // in how many events
	Files    int `json:"files"`    // in how many snapshots
}

// Event is one thing that happened.
type Event struct {
	Kind  Kind      `json:"-"` // the journal has it
	Seq   int       `json:"-"` // its line, from 1
	At    time.Time `json:"at"`
	Actor Actor     `json:"actor"`

	Text      string   `json:"text,omitempty"`
	Verb      string   `json:"verb,omitempty"`
	Line      string   `json:"line,omitempty"` // as it was typed, without secrets
	ExitCode  *int     `json:"exit_code,omitempty"`
	Providers []string `json:"providers,omitempty"`
	Figures   []Figure `json:"figures,omitempty"`
	Looks     []Look   `json:"looks,omitempty"` // of each kind and scope the first and the last
	Flags     []Check  `json:"flags,omitempty"`
	Causes    []Cause  `json:"causes,omitempty"`
	Checks    []Check  `json:"checks,omitempty"`
	Acts      []Act    `json:"acts,omitempty"`
	MoreActs  int      `json:"more_acts,omitempty"` // beyond what an event holds; the journal of the run has them
	Errors    []string `json:"errors,omitempty"`

	Start     *Start     `json:"start,omitempty"`
	Step      *Step      `json:"step,omitempty"`
	Snapshot  *Snapshot  `json:"snapshot,omitempty"`
	Message   *Message   `json:"message,omitempty"`
	Redaction *Redaction `json:"redaction,omitempty"`
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

	// Alert and Severity are those of the start, else what was seen since; "" = not known.
	Alert, Severity string

	StartedAt time.Time
	StartedBy Actor
	ClosedAt  time.Time

	// Problem is why the record ends here although more may have been written; "" = it is whole.
	Problem string
	// Truncated says that the last line is incomplete: a process was killed while it wrote it. The
	// next event replaces it.
	Truncated bool
}

// replay makes the incident of its events.
func (i *Incident) replay(e Event) {
	i.Events = append(i.Events, e)
	switch e.Kind {
	case Started:
		if e.Start != nil {
			i.Start = *e.Start
		}
		i.State, i.StartedAt, i.StartedBy = Open, e.At, e.Actor
		i.Alert, i.Severity = i.Start.Alert, i.Start.Severity
	case Closed:
		i.State, i.As, i.ClosedAt = StateEnded, e.As, e.At
	case Acknowledged, Noted, Seen, Acted, Verified, Stepped, Snapshotted, Escalated, Redacted:
	}
	for _, f := range e.Flags {
		i.addFlag(f)
	}
}

// AlertTitle begins the title of a flag that is an alert.
const AlertTitle = "alert: "

func (i *Incident) addFlag(f Check) {
	if strings.HasPrefix(f.Title, AlertTitle) && i.Alert == "" {
		i.Alert = f.ID
	}
	if i.Start.Severity == "" && (f.Severity == "critical" || i.Severity == "") {
		i.Severity = f.Severity
	}
}

// Snapshots are those of the incident, oldest first.
func (i *Incident) Snapshots() []Snapshot {
	var all []Snapshot
	for _, e := range i.Events {
		if e.Snapshot != nil {
			all = append(all, *e.Snapshot)
		}
	}
	return all
}

// Has says that the record has an event of a kind.
func (i *Incident) Has(kind Kind) bool {
	for _, e := range i.Events {
		if e.Kind == kind {
			return true
		}
	}
	return false
}
