// Package runs keeps what runs that end or change sandboxes are about to do, and what came of it: the
// entries of their journals, the one writer of them, and what readers make of them.
//
// An end of a sandbox is recorded here by safety.End: an Intent before its request, then its Answer and its Result.
// A Conclusion is the last entry of a whole run.
//
// A run by a rule (cleanup, reconcile) does nothing without its journal; an end that somebody named, or
// that a task asked for, does not depend on it. Which sandboxes a run selects, and which limits it
// has, belongs to the packages above; how a line reaches the disk to the package journal.
package runs

import (
	"encoding/json"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/sandbox"
)

// The kinds of entries in the journal of a run.
const (
	EntryBegin      = "begin"  // Begin: the plan of the run
	EntryIntent     = "intent" // Intent: the end of this sandbox, or a change of its record, is requested now
	EntryAnswer     = "answer" // Answer: the answer to the request
	EntryResult     = "result" // Result: the outcome
	EntryResume     = "resume" // Actor: a process resumes the interrupted run
	EntryConclusion = "end"    // Conclusion: nothing is left to do
)

// The verbs whose runs end sandboxes, move their ends or change records.
const (
	VerbCleanup   = "cleanup"
	VerbReconcile = "reconcile"
	VerbTerminate = "terminate"
	VerbStop      = "stop"
	VerbTask      = "task"
	VerbDrill     = "drill"
	VerbSweep     = "sweep" // of what a dead process has left
	VerbExtend    = "extend"
)

// The actions on a sandbox. Those that are not here change its record.
const (
	ActTerminate = "terminate"
	ActDelete    = "delete" // what is left of it is deleted too
	ActExtend    = "extend" // its end is moved
)

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
	// CoverageGap is why the run does not prove that its layer works; "" = it does.
	CoverageGap string         `json:"shortfall,omitempty"`
	Plan        Plan           `json:"plan"`
	Guards      []Guard        `json:"guards"`
	Profiles    []Profile      `json:"profiles"`
	Kept        map[string]int `json:"kept"` // how many stayed, by the word of the reason
}

// Plan is the largest set that a run acts on.
type Plan struct {
	Schema string          `json:"schema,omitempty"` // of the file in which a plan is reviewed; "" = it can be in none
	RunID  string          `json:"run_id"`
	MadeAt time.Time       `json:"made_at"`
	Cutoff time.Time       `json:"cutoff,omitzero"`
	Rule   json.RawMessage `json:"rule,omitempty"` // by which a cleanup has selected (cleanup.Rule)
	Items  []Item          `json:"items"`
}

// Item is one sandbox of a plan, with what must still hold when it is ended.
type Item struct {
	Ref       sandbox.Ref   `json:"ref"`
	Name      string        `json:"name,omitempty"`
	State     sandbox.State `json:"state"`
	CreatedAt time.Time     `json:"created_at,omitzero"`
	Owner     string        `json:"owner,omitempty"`
	Owned     string        `json:"owned,omitempty"` // the rule by which its profile owned it; "" = none
	Reason    string        `json:"reason"`
	Cause     sandbox.Cause `json:"cause,omitempty"` // by the judgement of the survey; "" = none is known
	// Excluded is why the run that applies the plan may not end it: no guard of that run
	// has counted it. "" = it may. A resume keeps to it.
	Excluded string `json:"excluded,omitempty"`
}

// Guard is one limit of the run, with its result (safety.Guard).
type Guard struct {
	Name  string  `json:"name"`
	Limit float64 `json:"limit"` // a share is written from 0 to 1
	Value float64 `json:"value"`
	OK    bool    `json:"ok"`
}

// Profile is what a run saw of one profile.
type Profile struct {
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
	if b.CoverageGap != "" {
		return ""
	}
	return b.Layer
}

// Intent is written before the end of a sandbox, or a change of its record, is requested: its state then.
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
	// Action, Class, Cause, Reason and the evidence of both sides are those of a reconcile, which also
	// changes records, or of an extension; "" = to end it.
	Action  string             `json:"action,omitempty"`
	Class   string             `json:"class,omitempty"`
	Cause   string             `json:"cause,omitempty"`
	Reason  string             `json:"reason,omitempty"`
	Record  []sandbox.Evidence `json:"record,omitempty"`
	Reality []sandbox.Evidence `json:"reality,omitempty"`
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

// Conclusion is the last entry of a run: what came of it as a whole.
type Conclusion struct {
	Counts    fleet.Counts `json:"counts"`
	ExitCode  int          `json:"exit_code"`
	Error     string       `json:"error,omitempty"`
	Refused   bool         `json:"refused,omitempty"`
	Succeeded []string     `json:"succeeded"` // the profiles in which everything was done
}

// KeptLines is how many last lines of output are kept of a sandbox that is ended.
const KeptLines = 50

// maxLine limits one line of output in the journal, in bytes.
const maxLine = 2000

// IntentOf is the intent to end a sandbox.
func IntentOf(s sandbox.Sandbox, del bool) Intent {
	return Intent{
		Ref: s.Ref(), Name: s.Name, State: s.State, RawState: s.RawState, CreatedAt: s.CreatedAt.UTC(), StartedAt: s.StartedAt.UTC(), LastActivityAt: s.LastActivityAt.UTC(),
		Template: s.Template, AgentType: s.AgentType, TaskID: s.TaskID, Labels: s.Labels, Logs: []string{}, Delete: del,
	}
}

// KeepLines keeps the last lines of output, as far as they were read.
func (i *Intent) KeepLines(logs fleet.Part[[]sandbox.LogLine]) {
	for _, line := range logs.Got[max(0, len(logs.Got)-KeptLines):] {
		text := line.Text
		if len(text) > maxLine {
			text = text[:maxLine] + "..."
		}
		i.Logs = append(i.Logs, text)
	}
	if logs.Err != nil {
		i.LogsError = logs.Err.Error()
	}
}
