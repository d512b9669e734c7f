package reconcile

import (
	"slices"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Journal records intents and results. Append returns when the line is durable; it is
// called concurrently.
type Journal interface {
	Append(kind string, data any) error
}

// The kinds of lines that this package writes.
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

// Result is written when the result of a row is known.
type Result struct {
	Ref     string             `json:"ref"`
	Action  Action             `json:"action"`
	Outcome sandbox.Outcome    `json:"outcome"`
	Reason  string             `json:"reason"`
	After   []sandbox.Evidence `json:"evidence"`
	// Request is the last known request to end it; nil = none was sent.
	Request *sandbox.EndRequest `json:"request,omitempty"`
}

// journalWriter writes to the journal.
type journalWriter struct {
	journal Journal
	delete  bool
	redact  func(string) string
}

// redactEvidence removes secrets from evidence, which contains answers of providers.
func (s *journalWriter) redactEvidence(evidence []sandbox.Evidence) []sandbox.Evidence {
	evidence = slices.Clone(evidence)
	for i := range evidence {
		evidence[i].Value = s.redactText(evidence[i].Value)
	}
	return evidence
}

func (s *journalWriter) redactText(text string) string {
	if s.redact == nil {
		return text
	}
	return s.redact(text)
}

// writeIntent makes the intent durable; after an error nothing may be called.
func (s *journalWriter) writeIntent(r Row) error {
	err := s.journal.Append(LineIntent, Intent{
		Ref: r.Ref.String(), Action: r.Action, Class: r.Class, Cause: r.Cause, Reason: s.redactText(r.Reason),
		Delete: s.delete && r.Action == ActTerminate, Record: s.redactEvidence(r.Record), Reality: s.redactEvidence(r.Reality),
	})
	if err != nil {
		return fault.Placed(err, r.Ref.Provider, "journal of "+r.Ref.ID+", so nothing was called")
	}
	return nil
}

// writeResult records the result of a row. Where that fails, the caller still gets the
// result, beside the error.
func (s *journalWriter) writeResult(d *Done) {
	if !d.Row.Action.Acts() {
		return
	}
	line := Result{Ref: d.Ref.String(), Action: d.Row.Action, Outcome: d.Outcome, Reason: s.redactText(d.Reason), After: s.redactEvidence(d.Evidence)}
	if d.Request != nil {
		request := *d.Request
		request.Detail = s.redactText(request.Detail)
		line.Request = &request
	}
	err := s.journal.Append(LineResult, line)
	d.Journal = fault.Placed(err, d.Ref.Provider, "journal of "+d.Ref.ID)
}
