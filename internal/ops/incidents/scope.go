// Package incidents reports what happened in a run of a runbook or in a span of time, from what is on record,
// and keeps what people note.
//
// An incident is a question about the records, so a report is made from them each time and has late notes, too.
// Where no other record has what a verb has concluded or done, the verb leaves an event in history
// (ops.Env.KeepEvent). Runs of runbooks are a floor above: engine.FindIncident makes the scope of one.
package incidents

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/incident"
	"sbx/internal/ops"
)

// Scope is what a report is about: a run of a runbook, an incident that an earlier version recorded, or a span
// of time.
type Scope struct {
	ID        string // of the run or the incident; "" = a span of time
	Title     string
	Runbook   string // "" = the one for its alert or cause
	Alert     string // "" = the first that is on record
	Severity  string // "" = the worst that is on record
	Providers []string
	Since     time.Time // zero where the start cannot be read
	Until     time.Time // zero = it goes on
	// NotedUntil is until when what is noted is about it: of a run until the next one begins, since people note
	// what they know, and answer, when it is over. Zero = until its end.
	NotedUntil time.Time
	By         incident.Actor // who began it; nobody began a span
	Alerts     []string       // that it may be about; none = any
	Problems   []string       // why it cannot be read further

	// What an earlier version recorded.
	Said       []incident.Event
	DetectedAt time.Time
	DetectedBy string
}

// CheckSpan refuses a span of time that is none; without a beginning there is none.
func CheckSpan(since, until time.Time) error {
	switch {
	case since.IsZero() && !until.IsZero():
		return fault.Usage("--until needs --since").WithHint("`sbx incident report --since 14:00 --until 15:00`")
	case !until.IsZero() && !since.Before(until):
		return fault.Usage("--since %s is not before --until %s", since.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
	}
	return nil
}

// staleAfter is when an incident that nobody has closed is taken for forgotten: it goes on no longer than its
// newest line.
const staleAfter = 24 * time.Hour

// FormerScope is an incident that an earlier version recorded, by its id or the beginning of it.
func FormerScope(env *ops.Env, word string) (Scope, error) {
	folder, err := env.Incidents()
	if err != nil {
		return Scope{}, err
	}
	id, err := folder.Find(word)
	if err != nil {
		return Scope{}, err
	}
	i, err := folder.Read(id)
	if err != nil {
		return Scope{}, err
	}
	s := Scope{
		ID: id, Title: i.Start.Title, Runbook: i.Start.Runbook, Alert: i.Start.Alert, Severity: i.Start.Severity, Providers: i.Start.Providers,
		Since: i.StartedAt, Until: i.ClosedAt, By: i.StartedBy, Said: i.Events, DetectedAt: i.Start.DetectedAt, DetectedBy: i.Start.DetectedBy,
	}
	if i.Problem != "" {
		s.Problems = append(s.Problems, "the record ends here, since "+i.Problem)
	}
	if s.Until.IsZero() {
		last := i.StartedAt
		for _, e := range i.Events {
			if e.At.After(last) {
				last = e.At
			}
		}
		if env.Now().Sub(last) > staleAfter {
			s.Until = last
		}
	}
	return s, nil
}
