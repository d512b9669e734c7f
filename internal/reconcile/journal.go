package reconcile

import (
	"slices"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Journal keeps what was meant and what came of it. Append returns when the line
// survives a crash; several goroutines call it.
type Journal interface {
	Append(kind string, data any) error
}

// Kinds of the lines that this room writes.
const (
	LineIntent = "intent"
	LineResult = "result"
)

// Intent is written before anything is called for a row.
type Intent struct {
	Ref     string             `json:"ref"`
	Action  Action             `json:"action"`
	Class   Class              `json:"class"`
	Cause   Cause              `json:"cause"`
	Reason  string             `json:"reason"`
	Delete  bool               `json:"delete"`
	Record  []sandbox.Evidence `json:"record"`
	Reality []sandbox.Evidence `json:"reality"`
}

// Result is written when it is known what became of a row.
type Result struct {
	Ref     string             `json:"ref"`
	Action  Action             `json:"action"`
	Outcome sandbox.Outcome    `json:"outcome"`
	Reason  string             `json:"reason"`
	After   []sandbox.Evidence `json:"evidence"`
	// Request is the last request to end it that is known; nil = none was sent.
	Request *sandbox.EndRequest `json:"request,omitempty"`
}

// scribe writes to the journal.
type scribe struct {
	journal Journal
	delete  bool
	redact  func(string) string
}

// hidden is evidence without secrets: what a provider answers is part of it.
func (s *scribe) hidden(evidence []sandbox.Evidence) []sandbox.Evidence {
	evidence = slices.Clone(evidence)
	for i := range evidence {
		evidence[i].Value = s.hide(evidence[i].Value)
	}
	return evidence
}

func (s *scribe) hide(text string) string {
	if s.redact == nil {
		return text
	}
	return s.redact(text)
}

// intend makes the intent durable; an error means that nothing may be called.
func (s *scribe) intend(r Row) error {
	err := s.journal.Append(LineIntent, Intent{
		Ref: r.Ref.String(), Action: r.Action, Class: r.Class, Cause: r.Cause, Reason: s.hide(r.Reason),
		Delete: s.delete && r.Action == ActTerminate, Record: s.hidden(r.Record), Reality: s.hidden(r.Reality),
	})
	if err != nil {
		return fault.Placed(err, r.Ref.Provider, "journal of "+r.Ref.ID+", so nothing was called")
	}
	return nil
}

// result notes what became of a row. It is not lost when that fails: it is in what
// the caller sees, beside the error.
func (s *scribe) result(d *Done) {
	if !d.Row.Action.Acts() {
		return
	}
	line := Result{Ref: d.Ref.String(), Action: d.Row.Action, Outcome: d.Outcome, Reason: s.hide(d.Reason), After: s.hidden(d.Evidence)}
	if d.Request != nil {
		request := *d.Request
		request.Detail = s.hide(request.Detail)
		line.Request = &request
	}
	err := s.journal.Append(LineResult, line)
	d.Journal = fault.Placed(err, d.Ref.Provider, "journal of "+d.Ref.ID)
}
