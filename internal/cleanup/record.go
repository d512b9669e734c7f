package cleanup

import (
	"time"

	"sbx/internal/fleet"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
)

// The kinds of entries in the journal of a run.
const (
	EntryBegin  = "begin"  // Begin: the plan of the run
	EntryIntent = "intent" // Intent: the end of this sandbox is requested now
	EntryAnswer = "answer" // Answer: the answer to the request
	EntryResult = "result" // Result: the outcome
	EntryResume = "resume" // Actor: a process resumes the interrupted run
	EntryEnd    = "end"    // End: nothing is left to do
)

// Journal takes entries; each is durable when Append returns.
type Journal interface {
	Append(kind string, data any) error
}

// Actor is the process of a run.
type Actor struct {
	Who     string `json:"who"`     // The user.
	Host    string `json:"host"`    // The host.
	PID     int    `json:"pid"`     // The process.
	Version string `json:"version"` // The version of sbx.
}

// Begin is the first entry of a run.
type Begin struct {
	Actor

	Verb  string `json:"verb"`
	Layer string `json:"layer,omitempty"` // the layer of defence
	// Shortfall is why the run does not prove that its layer works; "" = it does.
	Shortfall string             `json:"shortfall,omitempty"`
	Plan      Plan               `json:"plan"`
	Guards    []safety.Guard     `json:"guards"`
	Profiles  []ShareRecord      `json:"profiles"`
	Kept      map[KeepReason]int `json:"kept"`
}

// ShareRecord is what a run saw of one profile.
type ShareRecord struct {
	Profile  string `json:"profile"`          // The profile.
	Complete bool   `json:"complete"`         // False: it could not be listed, and nothing of it was selected.
	Error    string `json:"error,omitempty"`  // Why it could not be listed.
	Fleet    int    `json:"fleet"`            // How many sandboxes it had.
	Active   *int   `json:"active,omitempty"` // How many of them ran; null: not counted, or the listing was incomplete.
	Selected int    `json:"selected"`         // How many were selected.
	// How many the rule would end if they had an owner, where ownership is not configured for the
	// profile.
	Unowned int `json:"unowned,omitempty"`
}

// Proven is the layer that the run proves; "" = none.
func (b Begin) Proven() string {
	if b.Shortfall != "" {
		return ""
	}
	return b.Layer
}

// Intent is written before the end of a sandbox is requested: its state then.
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
	LogsError      string            `json:"logs_error,omitempty"` // why lines are missing
	Delete         bool              `json:"delete"`               // whether it is to be deleted
	// Action and Reason are those of a reconcile, which also changes records; "" = to end it.
	Action string `json:"action,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Ends reports whether the intent is to end the sandbox: to adopt one, or to mark its record, is not.
func (i Intent) Ends() bool { return i.Action == "" || endsSandbox(i.Action) }

func endsSandbox(action string) bool { return action == ActTerminate || action == ActDelete }

// Answer is the answer to the request to end a sandbox. Without it, a resume does not know
// whether the request was refused.
type Answer struct {
	Ref     sandbox.Ref        `json:"ref"`
	Request sandbox.EndRequest `json:"request"`
}

// Result is the outcome of one sandbox.
type Result struct {
	Ref      sandbox.Ref        `json:"ref"`
	Outcome  sandbox.Outcome    `json:"outcome"`
	Reason   string             `json:"reason,omitempty"`
	Seconds  float64            `json:"duration_seconds"`
	Evidence []sandbox.Evidence `json:"evidence"`
	// Request is the last known request to end it, by which a later read decides what a
	// missing record proves. Nil = none was sent.
	Request *sandbox.EndRequest `json:"request,omitempty"`
}

// End is the last entry of a run.
type End struct {
	Counts    fleet.Counts `json:"counts"`
	ExitCode  int          `json:"exit_code"`
	Error     string       `json:"error,omitempty"`
	Refused   bool         `json:"refused,omitempty"`
	Succeeded []string     `json:"succeeded"` // the profiles in which everything was done
}

// keptLines is how many last lines of output are kept of a sandbox that is ended.
const keptLines = 50

// IntentOf is the intent of an ending that keeps no output.
func IntentOf(s sandbox.Sandbox, del bool, redact func(string) string) Intent {
	return newIntent(s, fleet.Part[[]sandbox.LogLine]{}, del, redact)
}

// ResultOf is an ending as a journal entry.
func ResultOf(e sandbox.Ending, redact func(string) string) Result { return newResult(e, redact) }

func newIntent(s sandbox.Sandbox, logs fleet.Part[[]sandbox.LogLine], del bool, redact func(string) string) Intent {
	i := Intent{
		Ref: s.Ref(), Name: s.Name, State: s.State, RawState: s.RawState, CreatedAt: s.CreatedAt.UTC(), StartedAt: s.StartedAt.UTC(), LastActivityAt: s.LastActivityAt.UTC(),
		Template: s.Template, AgentType: s.AgentType, TaskID: s.TaskID, Labels: s.Labels, Logs: []string{}, Delete: del,
	}
	for _, line := range logs.Got[max(0, len(logs.Got)-keptLines):] {
		i.Logs = append(i.Logs, redact(clipLine(line.Text)))
	}
	if logs.Err != nil {
		i.LogsError = redact(logs.Err.Error())
	}
	return i
}

// maxLine bounds one line in the journal, in bytes.
const maxLine = 2000

func clipLine(text string) string {
	if len(text) <= maxLine {
		return text
	}
	return text[:maxLine] + "..."
}

func newResult(e sandbox.Ending, redact func(string) string) Result {
	r := Result{Ref: e.Ref, Outcome: e.Outcome, Reason: redact(e.Reason), Seconds: e.Duration.Seconds(), Evidence: e.Evidence}
	if r.Evidence == nil {
		r.Evidence = []sandbox.Evidence{}
	}
	if e.Request != nil {
		r.Request = redactRequest(*e.Request, redact)
	}
	return r
}

func redactRequest(r sandbox.EndRequest, redact func(string) string) *sandbox.EndRequest {
	r.Detail = redact(r.Detail)
	return &r
}
