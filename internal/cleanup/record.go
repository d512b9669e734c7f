package cleanup

import (
	"time"

	"sbx/internal/fleet"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// The kinds of entries in the journal of a run.
const (
	EntryBegin  = "begin"  // Begin: what is set out to be done
	EntryIntent = "intent" // Intent: this sandbox is asked to end now
	EntryAnswer = "answer" // Answer: what the request was answered
	EntryResult = "result" // Result: what became of it
	EntryResume = "resume" // Actor: somebody goes on after the run was cut off
	EntryEnd    = "end"    // End: nothing is left to do
)

// Journal takes entries; each is durable when Append returns.
type Journal interface {
	Append(kind string, data any) error
}

// Actor is who runs.
type Actor struct {
	Who     string `json:"who"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
}

// Begin is the first entry of a run.
type Begin struct {
	Actor

	Verb  string `json:"verb"`
	Layer string `json:"layer,omitempty"` // which layer of defence it is
	// Shortfall is why the run is no proof that its layer works; "" = it is one.
	Shortfall string         `json:"shortfall,omitempty"`
	Plan      Plan           `json:"plan"`
	Guards    []safety.Guard `json:"guards"`
	Profiles  []ShareRecord  `json:"profiles"`
	Kept      map[Ground]int `json:"kept"`
}

// ShareRecord is what a run saw of one profile.
type ShareRecord struct {
	Profile  string `json:"profile"`
	Complete bool   `json:"complete"`
	Error    string `json:"error,omitempty"`
	Fleet    int    `json:"fleet"`
	Active   *int   `json:"active,omitempty"` // how many ran; nil = not counted, or the listing was incomplete
	Selected int    `json:"selected"`
	// Unowned counts what the rule would end and nobody owns, where nobody has decided
	// whose the sandboxes of the profile are.
	Unowned int `json:"unowned,omitempty"`
}

// Proven is the layer that the run is a proof of; "" = none.
func (b Begin) Proven() string {
	if b.Shortfall != "" {
		return ""
	}
	return b.Layer
}

// Intent is written before a sandbox is asked to end: what it was.
type Intent struct {
	Ref            sandbox.Ref       `json:"ref"`
	Name           string            `json:"name,omitempty"`
	State          sandbox.State     `json:"state"`
	RawState       string            `json:"raw_state,omitempty"`
	CreatedAt      time.Time         `json:"created_at,omitzero"`
	StartedAt      time.Time         `json:"started_at,omitzero"`
	LastActivityAt time.Time         `json:"last_activity_at,omitzero"`
	Template       string            `json:"template,omitempty"`
	AgentType      string            `json:"agent_type,omitempty"`
	TaskID         string            `json:"task_id,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Logs           []string          `json:"logs"`                 // its last lines, oldest first
	LogsError      string            `json:"logs_error,omitempty"` // why they are not all there
	Delete         bool              `json:"delete"`               // what is asked
}

// Answer is what the request to end a sandbox was answered. Without one, a run that
// was cut off does not know whether its request was refused.
type Answer struct {
	Ref     sandbox.Ref        `json:"ref"`
	Request sandbox.EndRequest `json:"request"`
}

// Result is what became of one sandbox.
type Result struct {
	Ref      sandbox.Ref        `json:"ref"`
	Outcome  sandbox.Outcome    `json:"outcome"`
	Reason   string             `json:"reason,omitempty"`
	Seconds  float64            `json:"duration_seconds"`
	Evidence []sandbox.Evidence `json:"evidence"`
	// Request is the last request to end it that is known; a later look judges by it
	// what a missing record proves. Nil = none was sent.
	Request *sandbox.EndRequest `json:"request,omitempty"`
}

// End is the last entry of a run.
type End struct {
	Counts    fleet.Counts `json:"counts"`
	ExitCode  int          `json:"exit_code"`
	Error     string       `json:"error,omitempty"`
	Refused   bool         `json:"refused,omitempty"`
	Succeeded []string     `json:"succeeded"` // the profiles in which nothing is left undone
}

// tailKept is how many last lines of output are kept of what is ended (hygiene,
// feature 14).
const tailKept = 50

// IntentOf is the intent of an ending that keeps no output of the sandbox.
func IntentOf(s sandbox.Sandbox, del bool, redact func(string) string) Intent {
	return intentOf(s, fleet.Part[[]sandbox.LogLine]{}, del, redact)
}

// ResultOf is what became of a sandbox, as a journal keeps it.
func ResultOf(e sandbox.Ending, redact func(string) string) Result { return resultOf(e, redact) }

func intentOf(s sandbox.Sandbox, logs fleet.Part[[]sandbox.LogLine], del bool, redact func(string) string) Intent {
	i := Intent{
		Ref: s.Ref(), Name: s.Name, State: s.State, RawState: s.RawState, CreatedAt: s.CreatedAt.UTC(), StartedAt: s.StartedAt.UTC(), LastActivityAt: s.LastActivityAt.UTC(),
		Template: s.Template, AgentType: s.AgentType, TaskID: s.TaskID, Labels: s.Labels, Logs: []string{}, Delete: del,
	}
	for _, line := range logs.Got[max(0, len(logs.Got)-tailKept):] {
		i.Logs = append(i.Logs, redact(clip(line.Text)))
	}
	if logs.Err != nil {
		i.LogsError = redact(logs.Err.Error())
	}
	return i
}

// maxLine bounds one line in the journal, in bytes: a line of a log may be huge.
const maxLine = 2000

func clip(text string) string {
	if len(text) <= maxLine {
		return text
	}
	return text[:maxLine] + "..."
}

func resultOf(e sandbox.Ending, redact func(string) string) Result {
	r := Result{Ref: e.Ref, Outcome: e.Outcome, Reason: redact(e.Reason), Seconds: e.Duration.Seconds(), Evidence: e.Evidence}
	if r.Evidence == nil {
		r.Evidence = []sandbox.Evidence{}
	}
	if e.Request != nil {
		r.Request = redacted(*e.Request, redact)
	}
	return r
}

func redacted(r sandbox.EndRequest, redact func(string) string) *sandbox.EndRequest {
	r.Detail = redact(r.Detail)
	return &r
}
