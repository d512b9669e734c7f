// Package engine runs runbooks: the steps in their order, the branches of the causes that were
// found, acts behind their gates, verification and escalation.
//
// A run is on record as it goes: one journal, from which a run that was cut off goes on. A step is on record
// when it begins and when it ends, the plan of an act before the act. Such a plan, an act, an answer and an end
// wait for the disk; a look does not, since a run that goes on looks again. The ids begin with b-, in a folder
// of their own, so that no check of bulk runs counts them.
//
// A source is read once, and all those of a step at once; an act makes everything stale. The lock of a run
// keeps a second process from it; the lock of bulk runs is taken by the operations inside an act.
//
// What acts is in ops, with its guards, leases and journals; what a run looks like is in views. The
// package prints nothing.
package engine

import (
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/runbook"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// Version is the version of the form of a record. A record of a later one is refused.
const Version = 1

// State is how far a step is.
type State string

// The closed list. A skipped step was left out by a person, by its condition, or because nobody
// could do it; a step that is not selected belongs to a branch that does not apply.
const (
	Pending     State = "pending"
	Running     State = "running"
	Done        State = "done"
	Failed      State = "failed"
	Skipped     State = "skipped"
	NotSelected State = "not_selected"
)

// isLook says that a step has neither acted nor asked: a run that goes on can do it again.
func (s *Step) isLook() bool {
	return s.State == NotSelected || s.Kind == runbook.KindCollect || s.Kind == runbook.KindCheck || s.State == Running && s.Act == nil
}

// IsOver says that nothing is left to do in a step.
func (s State) IsOver() bool { return s != Pending && s != Running }

// RunState is how far a run is.
type RunState string

// The closed list. A run that waits has a gate without an answer; one that was interrupted has no
// end, or ended by a signal. Both can go on.
const (
	RunRunning     RunState = "running"
	RunWaiting     RunState = "waiting"
	RunInterrupted RunState = "interrupted"
	RunDone        RunState = "done"
	RunFailed      RunState = "failed"
)

// CanResume says that a run in this state can go on.
func (s RunState) CanResume() bool { return s == RunWaiting || s == RunInterrupted }

// Run is one run of a runbook, as it is on record.
type Run struct {
	ID        string
	Runbook   string
	Title     string
	Document  string // the text of the runbook as it was when the run began
	File      string // where it was read
	Procedure string // "" = none was chosen
	Word      string // the sandbox or task that was named; "" = none
	Providers []string
	Actor     runs.Actor // of the process that began it
	Resumed   []Resumption
	DryRun    bool
	Staged    bool // over what a drill had staged
	StartedAt time.Time
	EndedAt   time.Time // zero = it has not ended
	State     RunState
	Verdict   sandbox.Verdict // whether all that was done and checked is as it should be
	Kind      fault.Kind      // of what went wrong; "" = nothing
	Error     string
	Steps     []Step
	Causes    []Cause
	Stuck     []Target // what the diagnosis found, each with its cause in words
	Calls     []Call   // whom to call
	Broken    string   // why the record cannot be trusted behind its last line; "" = it can
	// Unreadable are the entries that cannot be read: the run is shown without them, and not resumed.
	Unreadable runs.Unreadable

	// Took is how long this process has worked at the run, and Own the part of that which is no read, no
	// wait, no act and no answer. Neither is on record.
	Took time.Duration
	Own  time.Duration

	err     error
	decided bool // the causes were named, and the branches chosen
}

// Resumption is when somebody went on with a run.
type Resumption struct {
	At    time.Time  `json:"at"`
	Actor runs.Actor `json:"actor"`
}

// Step is one step of a run.
type Step struct {
	ID        string           `json:"id"`
	Number    string           `json:"number,omitempty"` // as runbook.Heading; "" = an earlier version has recorded it
	Word      string           `json:"word,omitempty"`
	Section   string           `json:"section"` // "diagnosis", "cause THEORY", "procedure ID", "verification"
	Title     string           `json:"title"`
	Kind      runbook.StepKind `json:"kind"`
	State     State            `json:"state"`
	Verdict   sandbox.Verdict  `json:"verdict,omitempty"` // of its condition, or of what it did; "" = it has none
	Reason    string           `json:"reason,omitempty"`  // why it failed, was skipped or is not selected
	Condition string           `json:"condition,omitempty"`
	BeganAt   time.Time        `json:"began_at"`
	EndedAt   time.Time        `json:"ended_at"`
	ETA       time.Duration    `json:"eta_ns"`  // for a person
	Took      time.Duration    `json:"took_ns"` // with the time that people took for answers
	Answers   []Answer         `json:"answers,omitempty"`
	Evidence  []string         `json:"evidence,omitempty"`
	DependsOn string           `json:"depends_on,omitempty"` // of a dry run: the step whose result decides
	Act       *Act             `json:"act,omitempty"`
}

// Heading is where the step stands in its runbook.
func (s *Step) Heading() runbook.Heading {
	return runbook.Heading{Number: s.Number, Word: s.Word, Title: s.Title}
}

// Sections of a run. Those of causes and procedures have the id behind a blank.
const (
	SectionDiagnosis    = "diagnosis"
	SectionCause        = "cause"
	SectionProcedure    = "procedure"
	SectionVerification = "verification"
)

// Answer is one question with its answer, by a collector or by a person.
type Answer struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
	Known    bool   `json:"known"`
	By       string `json:"by"` // the collector, or who answered
}

// Act is what an acting step was about to do, and what came of it.
type Act struct {
	Action   string    `json:"action"`
	Line     string    `json:"line"` // as a person types it
	Gate     string    `json:"gate"` // what had to be answered: yes, count or name
	Allowed  string    `json:"allowed,omitempty"`
	RunID    string    `json:"run_id,omitempty"` // of the operation's own journal
	Targets  []Target  `json:"targets"`
	Kept     []Target  `json:"kept,omitempty"`
	Declined []Target  `json:"declined,omitempty"` // that a person left at the gate
	Unowned  int       `json:"unowned,omitempty"`  // how many stay since nobody owns them
	Once     string    `json:"once,omitempty"`     // the line that ends those, without its limit
	Own      string    `json:"own,omitempty"`      // the line that makes those the operator's
	IntentAt time.Time `json:"intent_at"`
	EndedAt  time.Time `json:"ended_at"` // zero with an intent = its outcome is not known
	Outcomes []Outcome `json:"outcomes,omitempty"`
	Error    string    `json:"error,omitempty"`
	// Kind is the kind of Error.
	Kind   fault.Kind      `json:"kind,omitempty"`
	Expect string          `json:"expect,omitempty"` // the condition that proves the effect
	Effect sandbox.Verdict `json:"effect,omitempty"` // of Expect
}

// IsOpen says that an act was begun of which no outcome is on record.
func (a *Act) IsOpen() bool { return a != nil && !a.IntentAt.IsZero() && a.EndedAt.IsZero() }

// Target is what an act is about, and why.
type Target struct {
	Ref         string `json:"ref"` // a sandbox; of stop a task; of an emergency cleanup a provider
	Reason      string `json:"reason"`
	KeptBecause string `json:"ground,omitempty"` // why a found one stays, in a word or two; "" = nothing was found of it
	Cause       string `json:"cause,omitempty"`  // what is wrong with it, in a word or two; "" = nothing is known
}

// Outcome is what became of one target.
type Outcome struct {
	Ref     string          `json:"ref"`
	Outcome sandbox.Outcome `json:"outcome"`
	Reason  string          `json:"reason,omitempty"`
}

// Cause is one that the diagnosis names.
type Cause struct {
	ID         string             `json:"id"` // of the theory
	Title      string             `json:"title"`
	Confidence sandbox.Confidence `json:"confidence"`
	Score      float64            `json:"score"`
	Coverage   float64            `json:"coverage"`
	Evidence   []sandbox.Evidence `json:"evidence"`
	WhyNot     string             `json:"why_not,omitempty"`
	Refs       []string           `json:"refs"`
	Selected   bool               `json:"selected"` // its branch is done
	Branch     bool               `json:"branch"`   // the runbook has one
	See        string             `json:"see,omitempty"`
}

// Call is somebody to call, or not yet.
type Call struct {
	To       string          `json:"to"` // the contact's id
	Name     string          `json:"name"`
	Channel  string          `json:"channel,omitempty"`
	Alert    string          `json:"alert,omitempty"`
	When     string          `json:"when"`
	Verdict  sandbox.Verdict `json:"verdict"` // true = now
	Text     string          `json:"text,omitempty"`
	Evidence []string        `json:"evidence,omitempty"`
}

// Step finds a step by its id.
func (r *Run) Step(id string) *Step {
	if i := slices.IndexFunc(r.Steps, func(s Step) bool { return s.ID == id }); i >= 0 {
		return &r.Steps[i]
	}
	return nil
}

// Count counts the steps in a state.
func (r *Run) Count(state State) int {
	n := 0
	for _, s := range r.Steps {
		if s.State == state {
			n++
		}
	}
	return n
}

// Acts are the acting steps that were begun.
func (r *Run) Acts() []Step {
	return slices.DeleteFunc(slices.Clone(r.Steps), func(s Step) bool { return s.Act == nil || s.Act.IntentAt.IsZero() })
}

// Err decides the exit code of a run.
func (r *Run) Err() error { return r.err }
