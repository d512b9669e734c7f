package reconcile

import (
	"fmt"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// Row is one sandbox of a plan: its state on each side, and the conclusion.
type Row struct {
	Ref     sandbox.Ref
	Class   Class
	Cause   Cause
	Action  Action
	Verdict sandbox.Verdict // whether the two sides are proved to disagree
	Reason  string
	// Observations is how often it was observed in this state, Grace apart; 0 where one
	// observation is enough.
	Observations int
	Records      []Record
	Box          sandbox.Sandbox // of the best read; without an id where it does not exist
	Record       []sandbox.Evidence
	Reality      []sandbox.Evidence
	Err          error // of a read by id

	observation *fleet.Observation // of the sandbox itself; nil = it was not observed
	readAt      time.Time          // when its reads by id were requested; zero = there were none
	listed      sandbox.State      // in the list; "" = it is not in it
}

// NeedsAction reports whether the row needs an action: it counts in a check.
func (r Row) NeedsAction() bool { return r.Action != ActNone }

// newRow makes a row with the evidence of both sides.
func (p *pair) newRow(source string, now time.Time) Row {
	r := Row{Ref: p.sandboxRef(), Class: Both, Cause: CauseAgrees, Action: ActNone, Verdict: sandbox.False, Records: p.records, readAt: p.look.askedAt}
	box, there := p.bestRead()
	if there {
		r.Ref, r.Box = sandbox.Ref{Provider: p.profile, ID: box.ID}, box
	}
	if p.listed != nil {
		r.listed = p.listed.State
	}
	r.Record, r.Reality = p.evidenceOfRecords(source, now), p.evidenceOfReality(now)
	switch {
	case len(p.records) == 0:
		r.Class = RealOnly
	case !there && (p.listed == nil || !p.look.hasFailed()):
		r.Class = RecordOnly
	}
	return r
}

func (p *pair) evidenceOfRecords(source string, now time.Time) []sandbox.Evidence {
	if len(p.records) == 0 {
		return []sandbox.Evidence{{What: "record", Value: "none", Source: source, At: now}}
	}
	var all []sandbox.Evidence
	for _, r := range p.records {
		value := r.RawState
		if value == "" {
			value = "no state"
		}
		if r.TaskID != "" {
			value += ", task " + r.TaskID
		}
		at := r.lastTime()
		if at.IsZero() {
			at = now
		}
		all = append(all, sandbox.Evidence{What: "record", Value: value, Source: source, At: at})
	}
	return all
}

func (p *pair) evidenceOfReality(now time.Time) []sandbox.Evidence {
	listed := sandbox.Evidence{What: "list", Value: "not in it", Source: p.profile, At: now}
	if p.listed != nil {
		listed.Value = string(p.listed.State)
	}
	if !p.look.asked {
		return []sandbox.Evidence{listed}
	}
	got := sandbox.Evidence{What: "get", Value: string(p.look.sandbox.State), Source: p.profile, At: p.look.askedAt}
	if p.look.err != nil {
		got.Value = p.look.err.Error()
	}
	return []sandbox.Evidence{listed, got}
}

func (r Row) judged(class Class, cause Cause, action Action, verdict sandbox.Verdict, format string, args ...any) Row {
	r.Class, r.Cause, r.Action, r.Verdict = class, cause, action, verdict
	r.Reason = fmt.Sprintf(format, args...)
	return r
}

// Class is on which sides a sandbox was found.
type Class string

// All classes.
const (
	RecordOnly Class = "record_only" // on record, and not at the provider
	RealOnly   Class = "real_only"   // at the provider, and not on record
	Differs    Class = "differs"     // on both sides, which disagree
	Both       Class = "both"        // on both sides, which agree as far as is known
)

// Classes lists all classes, in the order of the runbook's counts.
func Classes() []Class { return []Class{RecordOnly, RealOnly, Differs, Both} }

// Cause is how a row came to its state.
type Cause string

// All causes.
const (
	CauseAgrees    Cause = "agrees"     // both sides say that it lives
	CauseGhost     Cause = "ghost"      // recorded as living, and proved to be gone
	CauseStale     Cause = "stale"      // recorded as living, and ended
	CauseZombie    Cause = "zombie"     // a task at work whose sandbox has ended
	CauseOrphan    Cause = "orphan"     // it lives, and has no record
	CauseLeak      Cause = "leak"       // recorded as ended, and it lives
	CauseOverdue   Cause = "overdue"    // kept alive longer than its record allows
	CauseKept      Cause = "kept_alive" // its task is over, and it is kept alive on purpose
	CauseDuplicate Cause = "duplicate"  // several records name it
	CauseReused    Cause = "reused"     // the record means an earlier one with this id or name
	CauseEnding    Cause = "ending"     // it is being ended
	CauseStopped   Cause = "stopped"    // recorded as living, and stopped where it could be resumed
	CauseUnclear   Cause = "unclear"    // one side does not say whether it should live
	CauseUnproved  Cause = "unproved"   // the read by id that would prove it has failed
)

// Action is what is to be done about a row.
type Action string

// All actions.
const (
	ActNone      Action = "none"            // nothing
	ActMark      Action = "mark_terminated" // end the record
	ActTerminate Action = "terminate"
	ActAdopt     Action = "adopt" // record the sandbox
	ActReport    Action = "report"
)

// Acts reports whether sbx itself would change something.
func (a Action) Acts() bool { return a == ActMark || a == ActTerminate || a == ActAdopt }
