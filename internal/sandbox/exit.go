package sandbox

import "time"

// Exit is how a program in a sandbox ended, and what that proves.
type Exit struct {
	Code       *int   // the program's code; 128+n for a death by signal n; nil when nobody saw it
	Raw        string // as the source spells it: "137", "-9", "signal: killed"
	Signal     string // "SIGKILL"; empty without one
	Class      Class
	Cause      Cause
	Confidence Confidence
	Evidence   []Evidence
}

// Evidence is one observed fact behind a claim.
type Evidence struct {
	What   string    `json:"what"`
	Value  string    `json:"value"`
	Source string    `json:"source"`
	At     time.Time `json:"at"`
}

// Class sorts exits by what an operator does about them.
type Class string

// The closed list of exit classes; `--retry-on` takes these.
const (
	ClassOK            Class = "ok"
	ClassAgentError    Class = "agent_error"
	ClassUsage         Class = "usage"
	ClassAuth          Class = "auth" // the provider refused the credentials: nothing was run
	ClassEnvironment   Class = "environment"
	ClassLauncher      Class = "launcher"
	ClassOOM           Class = "oom"
	ClassKilledByUs    Class = "killed_by_us"
	ClassKilledUnknown Class = "killed_unknown"
	ClassCrash         Class = "crash"
	ClassTimeout       Class = "timeout"
	ClassStopped       Class = "stopped"
	ClassTransport     Class = "transport"
	ClassGone          Class = "gone"
	ClassInfra         Class = "infra"
	ClassUnknown       Class = "unknown"
)

// Cause is why a sandbox ended or is stuck.
type Cause string

// The closed list of causes. CauseNone stands where nothing is wrong.
const (
	CauseNone           Cause = ""
	CauseOOM            Cause = "oom"
	CauseOOMChild       Cause = "oom_child"
	CauseRuntimeHeap    Cause = "runtime_heap"
	CauseMemoryWatchdog Cause = "memory_watchdog"
	CauseTimeout        Cause = "timeout"
	CauseInactivity     Cause = "inactivity"
	CauseStopped        Cause = "stopped"
	CauseSupervisorLost Cause = "supervisor_lost"
	CauseBusyLoop       Cause = "busy_loop"
	CauseHungIO         Cause = "hung_io"
	CauseLeak           Cause = "leak"
	CauseSilent         Cause = "silent"
	CauseNoAnswer       Cause = "no_answer"
	CauseProvisioning   Cause = "provisioning"
	CauseOrphan         Cause = "orphan"
	CauseUnknown        Cause = "unknown"
)

// Confidence grades a cause by its evidence.
type Confidence string

// The grades, strongest first. OOM is certain only by a kernel counter.
const (
	Certain           Confidence = "certain"
	Probable          Confidence = "probable"
	Hint              Confidence = "hint"
	ConfidenceUnknown Confidence = "unknown"
)

// Outcome is how the ending of one sandbox went.
type Outcome string

// The closed list of outcomes. Each selected sandbox ends in exactly one.
const (
	OutcomeVerified     Outcome = "verified"
	OutcomeAlreadyGone  Outcome = "already_gone"
	OutcomeAccepted     Outcome = "accepted"
	OutcomeStuck        Outcome = "stuck"
	OutcomeFailed       Outcome = "failed"
	OutcomeChanged      Outcome = "changed"
	OutcomeSkipped      Outcome = "skipped"
	OutcomeNotAttempted Outcome = "not_attempted"
)

// Outcomes lists every outcome, best first.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeVerified, OutcomeAlreadyGone, OutcomeAccepted, OutcomeStuck,
		OutcomeFailed, OutcomeChanged, OutcomeSkipped, OutcomeNotAttempted,
	}
}

// Ending is what became of one sandbox that was asked to end.
type Ending struct {
	Ref      Ref
	Outcome  Outcome
	Reason   string
	Duration time.Duration
	Evidence []Evidence
	Err      error       // why, for OutcomeFailed
	Request  *EndRequest // the last request to end it that is known; nil = none
}

// EndRequest is a request to end a sandbox and whether it was acknowledged. It is
// kept beyond the process that sent it: a record that is missing after a request
// which was refused or not answered proves no end, since an API may have dropped the
// record and left the machine running.
type EndRequest struct {
	At           time.Time `json:"at"`
	Acknowledged bool      `json:"acknowledged"`     // with a 2xx, or by a record that has shown the end under way since
	Detail       string    `json:"detail,omitempty"` // what came instead
	Delete       bool      `json:"delete,omitempty"` // what was asked
	CreatedAt    time.Time `json:"created_at,omitzero"`
	StartedAt    time.Time `json:"started_at,omitzero"` // of the run that was asked to end; zero = not known
}

// Unconfirmed says that a request may have been refused or lost; false for none.
func (r *EndRequest) Unconfirmed() bool { return r != nil && !r.Acknowledged }
