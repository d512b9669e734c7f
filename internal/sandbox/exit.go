package sandbox

import (
	"strings"
	"time"
)

// Exit is how a program in a sandbox ended, and what that proves.
type Exit struct {
	Code       *int   // the program's code; 128+n for a death by signal n; nil when not observed
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

// Class groups exits by what an operator does about them.
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

// The closed list of causes. CauseNone means that nothing is wrong.
const (
	CauseNone           Cause = ""
	CauseOOM            Cause = "oom"
	CauseOOMChild       Cause = "oom_child"
	CauseRuntimeHeap    Cause = "runtime_heap"
	CauseMemoryWatchdog Cause = "memory_watchdog"
	CauseProcessLimit   Cause = "process_limit" // of processes and threads
	CauseFileLimit      Cause = "file_limit"    // of open files
	CauseDiskFull       Cause = "disk_full"
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
	CauseEnding         Cause = "ending"
	CauseOrphan         Cause = "orphan"
	CauseGhost          Cause = "ghost"
	CauseRestarts       Cause = "restarts"   // its program ends and is started again
	CauseUnhealthy      Cause = "unhealthy"  // its own health check fails
	CauseMainEnded      Cause = "main_ended" // its main program has ended, and something beside it runs on
	CauseUnknown        Cause = "unknown"
)

// Causes lists every cause but CauseNone.
func Causes() []Cause {
	return []Cause{
		CauseOOM, CauseOOMChild, CauseRuntimeHeap, CauseMemoryWatchdog, CauseProcessLimit, CauseFileLimit, CauseDiskFull, CauseTimeout, CauseInactivity, CauseStopped, CauseSupervisorLost,
		CauseBusyLoop, CauseHungIO, CauseLeak, CauseSilent, CauseNoAnswer, CauseProvisioning, CauseEnding, CauseOrphan, CauseGhost, CauseRestarts, CauseUnhealthy, CauseMainEnded, CauseUnknown,
	}
}

// Confidence grades a cause by its evidence.
type Confidence string

// The grades, strongest first. OOM is certain only by a kernel counter.
const (
	Certain           Confidence = "certain"
	Probable          Confidence = "probable"
	Hint              Confidence = "hint"
	ConfidenceUnknown Confidence = "unknown"
)

// Outcome is the result of ending one sandbox.
type Outcome string

// The closed list of outcomes. Each selected sandbox has exactly one.
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

// Ending is the result of a request to end one sandbox.
type Ending struct {
	Ref      Ref
	Outcome  Outcome
	Reason   string
	Duration time.Duration
	Evidence []Evidence
	Err      error       // why, for OutcomeFailed
	Request  *EndRequest // the last known request to end it; nil = none
}

// EndRequest is a request to end a sandbox and whether it was acknowledged. It is stored
// beyond the process that sent it: a missing record after a refused or unanswered request
// proves no end, since an API may have lost the record and left the machine running.
type EndRequest struct {
	At           time.Time `json:"at"`
	Acknowledged bool      `json:"acknowledged"`     // with a 2xx, or by a record that has since shown the end
	Detail       string    `json:"detail,omitempty"` // the answer, or its absence
	Delete       bool      `json:"delete,omitempty"` // a delete was requested
	CreatedAt    time.Time `json:"created_at,omitzero"`
	StartedAt    time.Time `json:"started_at,omitzero"` // of the run that was to end; zero = not known
	State        State     `json:"state,omitempty"`     // before the request; "" = not known
	Again        bool      `json:"again,omitempty"`     // it repeats one that was not acknowledged
	// NotFound says that it was answered with "no such sandbox", which shows an absence and proves no end.
	NotFound bool `json:"not_found,omitempty"`
	// Answered says that something answered it, though not with a 2xx: what no answer came to was lost on its way, or
	// carried out.
	Answered bool `json:"answered,omitempty"`
	// NotSent says that it never left this machine, and stands for no request at all.
	NotSent bool `json:"not_sent,omitempty"`
	// Node is the machine that the sandbox ran on, by its last read; "" = not known.
	Node string `json:"node,omitempty"`
	// ExpiresAt is when the limit of the sandbox itself ends it, by its last read; zero = not known.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// Unconfirmed reports whether a request may have been refused or lost; false without one.
func (r *EndRequest) Unconfirmed() bool { return r.Sent() && !r.Acknowledged }

// Sent reports whether there was a request; false for nil.
func (r *EndRequest) Sent() bool { return r != nil && !r.NotSent }

// ExitWord is a provider's own word in place of an exit code: an error code, an HTTP status,
// the state of a session, or a number that is no program's exit code. It is valid for one
// provider: `aborted` is a session of Vercel, a code of E2B, and a signal everywhere else.
type ExitWord struct {
	Raw        string // lower case
	Class      Class
	Cause      Cause
	Confidence Confidence
	Says       string // what it proves, and what it leaves open
}

// ExitWords returns words of one class without a cause.
func ExitWords(class Class, says string, raw ...string) []ExitWord {
	words := make([]ExitWord, len(raw))
	for i, w := range raw {
		words[i] = ExitWord{Raw: w, Class: class, Cause: CauseUnknown, Confidence: ConfidenceUnknown, Says: says}
	}
	return words
}

// TimeoutWords returns words for a program that a time limit ended.
func TimeoutWords(confidence Confidence, says string, raw ...string) []ExitWord {
	words := ExitWords(ClassTimeout, says, raw...)
	for i := range words {
		words[i].Cause, words[i].Confidence = CauseTimeout, confidence
	}
	return words
}

// Label is the one name of a cause that people read, on every surface; "" for none.
func (c Cause) Label() string {
	switch c {
	case CauseNone:
		return ""
	case CauseOOM, CauseOOMChild:
		return "out of memory"
	case CauseRuntimeHeap:
		return "heap full"
	case CauseMemoryWatchdog:
		return "over memory limit"
	case CauseTimeout:
		return "time limit"
	case CauseLeak:
		return "memory leak"
	case CauseHungIO:
		return "waits on the network"
	case CauseSilent:
		return "silent"
	case CauseProvisioning:
		return "not started"
	case CauseEnding:
		return "not ended"
	case CauseOrphan:
		return "no owner"
	case CauseGhost:
		return "ghost"
	case CauseMainEnded:
		return "main program ended"
	case CauseUnknown:
		return "cause unknown"
	default:
		return strings.ReplaceAll(string(c), "_", " ") // busy loop, no answer, supervisor lost
	}
}
