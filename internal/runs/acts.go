package runs

import (
	"time"

	"sbx/internal/journal"
	"sbx/internal/sandbox"
)

// Act is one action on record: the end of a sandbox, a later end, or a change of its record. A
// request that was sent again by a resume is another act.
type Act struct {
	At        time.Time       `json:"at"` // of the request
	Actor     Actor           `json:"actor"`
	Verb      string          `json:"verb"`
	Layer     string          `json:"layer,omitempty"` // of the lines of defence that cron runs
	Run       string          `json:"run_id"`
	Ref       sandbox.Ref     `json:"ref"`
	Name      string          `json:"name,omitempty"`
	TaskID    string          `json:"task_id,omitempty"`
	Action    string          `json:"action"`            // ActTerminate, ActDelete, ActExtend, or what reconcile did to a record
	Reason    string          `json:"reason,omitempty"`  // why it was requested
	Cause     sandbox.Cause   `json:"cause,omitempty"`   // by the judgement before it; "" = none is known
	Outcome   sandbox.Outcome `json:"outcome,omitempty"` // "" = not known: the run was interrupted
	Detail    string          `json:"detail,omitempty"`  // what is said of the outcome
	SettledAt time.Time       `json:"settled_at,omitzero"`
}

// Ends reports whether the act is to end a sandbox, and not to change its record.
func (a Act) Ends() bool { return endsSandbox(a.Action) }

// ReadActs reads what a run did, in the order of its requests, as far as the chain of its journal
// holds; the log says whether it does, and the error names the entries that cannot be read, beside
// the acts of all others.
func ReadActs(d journal.Disk, run string) ([]Act, journal.Log, error) {
	r := actReader{run: run, last: map[sandbox.Ref]int{}, planned: map[sandbox.Ref]Item{}}
	var odd Unreadable
	log, err := journal.Scan(d, run, func(e journal.Entry) { odd.Note(r.addEntry(e)) })
	if err != nil {
		return nil, log, err
	}
	return r.acts, log, odd.Error(run)
}

type actReader struct {
	run     string
	begin   Begin
	actor   Actor
	planned map[sandbox.Ref]Item
	acts    []Act
	last    map[sandbox.Ref]int // the place of the last act on each
}

func (r *actReader) addEntry(e journal.Entry) error {
	switch e.Kind {
	case EntryBegin:
		return journal.Decode(e, func(b Begin) {
			r.begin, r.actor = b, b.Actor
			for _, i := range b.Plan.Items {
				r.planned[i.Ref] = i
			}
		})
	case EntryResume:
		return journal.Decode(e, func(a Actor) { r.actor = a })
	case EntryIntent:
		return journal.Decode(e, func(i Intent) { r.addIntent(i, e.At) })
	case EntryAnswer:
		return journal.Decode(e, func(a Answer) {
			r.changeLast(a.Ref, func(act *Act) {
				if act.Detail = a.Request.Detail; a.Request.Acknowledged {
					act.Outcome = sandbox.OutcomeAccepted
				}
			})
		})
	case EntryResult:
		return journal.Decode(e, func(result Result) {
			if _, requested := r.last[result.Ref]; !requested && !r.isPassedBy(result) { // a sweep records what it has done already
				r.addIntent(Intent{Ref: result.Ref}, e.At)
			}
			r.changeLast(result.Ref, func(act *Act) { act.Outcome, act.Detail, act.SettledAt = result.Outcome, result.Reason, e.At })
		})
	}
	return nil
}

func (r *actReader) addIntent(i Intent, at time.Time) {
	act := Act{
		At: at, Actor: r.actor, Verb: r.begin.Verb, Layer: r.begin.Layer, Run: r.run, Ref: i.Ref, Name: i.Name, TaskID: i.TaskID,
		Action: i.Action, Reason: i.Reason, Cause: r.planned[i.Ref].Cause,
	}
	switch {
	case i.Delete:
		act.Action = ActDelete
	case act.Action == "":
		act.Action = ActTerminate
	}
	if act.Reason == "" {
		act.Reason = r.planned[i.Ref].Reason
	}
	r.last[i.Ref] = len(r.acts)
	r.acts = append(r.acts, act)
}

// isPassedBy says that a result without a request is no act: nothing was tried, or it had ended.
func (r *actReader) isPassedBy(result Result) bool {
	if r.begin.Verb == VerbExtend { // its request is on record before it is sent
		return true
	}
	switch result.Outcome {
	case sandbox.OutcomeSkipped, sandbox.OutcomeNotAttempted, sandbox.OutcomeChanged, sandbox.OutcomeAlreadyGone:
		return true
	case sandbox.OutcomeVerified, sandbox.OutcomeAccepted, sandbox.OutcomeStuck, sandbox.OutcomeFailed:
	}
	return false
}

func (r *actReader) changeLast(ref sandbox.Ref, change func(*Act)) {
	if i, known := r.last[ref]; known {
		change(&r.acts[i])
	}
}
