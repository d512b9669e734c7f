package reconcile

import (
	"fmt"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// Row is one sandbox of a plan: what each side says of it, and what follows.
type Row struct {
	Ref     sandbox.Ref
	Class   Class
	Cause   Cause
	Action  Action
	Verdict sandbox.Verdict // whether the two sides are proved to disagree
	Reason  string
	// Observations is how often it was seen like this, each apart from the last;
	// 0 where one look is enough.
	Observations int
	Records      []Record
	Box          sandbox.Sandbox // of the best read; without id where there is none
	Record       []sandbox.Evidence
	Reality      []sandbox.Evidence
	Err          error // a read by id that failed

	seen   *fleet.Observation // what was asked of the sandbox itself; nil = nothing
	looked time.Time          // when the reads by id that it rests on began; zero = there were none
}

// Found says that the row wants something of somebody: it counts in a check.
func (r Row) Found() bool { return r.Action != ActNone }

// row begins a row with the evidence of both sides.
func (p *pair) row(source string, now time.Time) Row {
	r := Row{Ref: p.ref(), Class: Both, Cause: CauseAgrees, Action: ActNone, Verdict: sandbox.False, Records: p.records, looked: p.look.at}
	box, there := p.box()
	if there {
		r.Ref, r.Box = sandbox.Ref{Provider: p.profile, ID: box.ID}, box
	}
	r.Record, r.Reality = p.recordEvidence(source, now), p.realEvidence(now)
	switch {
	case len(p.records) == 0:
		r.Class = RealOnly
	case !there && (p.listed == nil || !p.look.failed()):
		r.Class = RecordOnly
	}
	return r
}

func (p *pair) recordEvidence(source string, now time.Time) []sandbox.Evidence {
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
		at := r.last()
		if at.IsZero() {
			at = now
		}
		all = append(all, sandbox.Evidence{What: "record", Value: value, Source: source, At: at})
	}
	return all
}

func (p *pair) realEvidence(now time.Time) []sandbox.Evidence {
	listed := sandbox.Evidence{What: "list", Value: "not in it", Source: p.profile, At: now}
	if p.listed != nil {
		listed.Value = string(p.listed.State)
	}
	if !p.look.asked {
		return []sandbox.Evidence{listed}
	}
	got := sandbox.Evidence{What: "get", Value: string(p.look.box.State), Source: p.profile, At: p.look.at}
	if p.look.err != nil {
		got.Value = p.look.err.Error()
	}
	return []sandbox.Evidence{listed, got}
}

// is fills in what was judged.
func (r Row) is(class Class, cause Cause, action Action, verdict sandbox.Verdict, format string, args ...any) Row {
	r.Class, r.Cause, r.Action, r.Verdict = class, cause, action, verdict
	r.Reason = fmt.Sprintf(format, args...)
	return r
}
