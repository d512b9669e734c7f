package incidents

import (
	"cmp"
	"slices"
	"time"

	"sbx/internal/history"
	"sbx/internal/incident"
	"sbx/internal/requirement"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// IncidentReport is all that is known of an incident.
type IncidentReport struct {
	Scope       Scope
	Said        []incident.Event // what people noted, and what an earlier version recorded
	Plan        ReportPlan
	At          time.Time
	Severity    string          // "" = not known
	Alert       string          // "" = not known
	Timeline    []IncidentEvent // oldest first
	Moments     []Moment
	Causes      []SeenCause
	Flags       []SeenCheck
	Figures     []SeenFigure
	Acts        []runs.Act // oldest first
	Checks      []SeenCheck
	Escalations []Escalation
	Steps       []Step
	Answers     []ReportAnswer
	Tasks       []ReportTask
	Problems    []string // what is missing, and why

	events []history.Event // oldest first
}

// IncidentEvent is one thing that happened: one of its sources is set.
type IncidentEvent struct {
	At              time.Time
	Kind            string // of incident.Event, or of the list above
	Who, Host, Verb string

	Said *incident.Event
	Seen *history.Event
	Acts []runs.Act // of one run
	Step *Step
	Told *Escalation
}

// Step is a step of a runbook that has ended, as the record of its run has it.
type Step struct {
	Run, Runbook string         // its ids
	Actor        incident.Actor // who ran it
	ID, Title    string
	Number, Word string // as its runbook numbers it; "" = an earlier version has recorded it
	Kind         string
	State        string // done, failed or skipped
	Verdict      string // true, false, unknown; "" = it has none
	Answer       string // of a person
	Text         string // what it found, or why it was left out
	ETA, Took    time.Duration
	Began, Ended time.Time
}

// Escalation is a notification that was sent, or could not be, or somebody whom a runbook names to be called.
type Escalation struct {
	At                     time.Time
	Who, Host, Verb        string // that found it
	Why                    string
	Alert, Severity, Level string
	To                     []string // who was told, or is to be called
	Call                   bool     // nothing was sent: a person is to call them
	Error                  string   // why it was not sent to all; "" = it was
}

// WasTold says that somebody has got a notification.
func (e Escalation) WasTold() bool { return !e.Call && len(e.To) > 0 }

// SeenCause is a cause as it was ranked, with the time of that.
type SeenCause struct {
	history.Cause

	At   time.Time
	Verb string
}

// SeenCheck is a flag or a target, with the time at which it was seen last.
type SeenCheck struct {
	history.Check

	At   time.Time
	Verb string
}

// SeenFigure is a figure of all sandboxes before the first act, and as it was last seen.
type SeenFigure struct {
	Name          string
	Before, After *int64 // nil = not known
	BeforeAt      time.Time
	AfterAt       time.Time
}

// ReportAnswer answers a question, as far as the record does.
type ReportAnswer struct {
	ReportQuestion

	Answer string // "" = none is on record
	Source string
	// NeedsPerson says that the record does not answer it, or only a person can.
	NeedsPerson bool
}

// ReportQuestion is a question of a runbook for the time after an incident.
type ReportQuestion struct {
	ID, Ask    string
	AnsweredBy []string // collectors; none = a person answers
}

// ReportTask is something to do after an incident.
type ReportTask struct {
	Title string
	Group string // detection, code, docs; "" = none
	Where string // the command that does it; "" = a person does it
	Cause string // the id of the cause that it is for; "" = any
}

// ReportPlan is what a runbook asks for after an incident.
type ReportPlan struct {
	Runbook   string
	Title     string
	Questions []ReportQuestion
	Tasks     []ReportTask
}

// Moment is when an incident reached a milestone, and how that is known.
type Moment struct {
	Milestone incident.Milestone
	At        time.Time // zero = not known
	Source    string    // where it is zero: why
	Who       string
}

// PlanFinder reads the runbook of an incident; "" = the one for its alert or cause.
type PlanFinder func(runbook, alert, cause string) (ReportPlan, error)

// Found is what runs of runbooks have done.
type Found struct {
	Steps  []Step          // that are over
	Events []history.Event // the causes that were named
	Calls  []Escalation
	Errors []error // of records that cannot be read
}

// RunFinder reads the runs of runbooks in a time, at some profiles (none = at any), and the one that is reported.
type RunFinder func(id string, since, until time.Time, profiles []string) Found

// ReportRequest says what is reported.
type ReportRequest struct {
	Scope Scope
	Runs  RunFinder  // nil = there are none
	Plan  PlanFinder // nil = neither questions nor tasks are reported
}

// addCheck keeps the newest verdict of each check.
func addCheck(all *[]SeenCheck, c history.Check, e history.Event) {
	c.ID = cmp.Or(requirement.Name(c.ID), c.ID) // the versions before named it by its requirement
	seen := SeenCheck{c, e.At, e.Verb}
	i := slices.IndexFunc(*all, func(have SeenCheck) bool { return have.ID == c.ID && have.Title == c.Title })
	if i < 0 {
		*all = append(*all, seen)
		return
	}
	(*all)[i] = seen
}

// addCause keeps of each cause what was surest: after the incident it is not seen any more.
func (r *IncidentReport) addCause(c history.Cause, at time.Time, verb string) {
	seen := SeenCause{c, at, verb}
	i := slices.IndexFunc(r.Causes, func(have SeenCause) bool { return have.ID == c.ID })
	switch {
	case i < 0:
		r.Causes = append(r.Causes, seen)
	case compareCauses(seen, r.Causes[i]) < 0:
		r.Causes[i] = seen
	}
}

func compareCauses(a, b SeenCause) int {
	return cmp.Or(cmp.Compare(sureness(a.Confidence), sureness(b.Confidence)), cmp.Compare(b.Score, a.Score))
}

// sureness orders confidences, the surest first.
func sureness(c sandbox.Confidence) int {
	i := slices.Index([]sandbox.Confidence{sandbox.Certain, sandbox.Probable, sandbox.Hint}, c)
	if i < 0 {
		return len(c) + 3
	}
	return i
}

// The kinds of events of a timeline that nobody has said.
const (
	EventSeen      = "seen"      // what a verb has concluded or made
	EventVerified  = "verified"  // all targets are met
	EventActed     = "acted"     // a run has terminated or changed something
	EventStep      = "step"      // a step of a runbook has ended
	EventEscalated = "escalated" // people were told, or could not be
	EventToCall    = "to_call"   // somebody is to be called
)
