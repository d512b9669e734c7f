package task

import (
	"time"

	"sbx/internal/sandbox"
)

// State is where a task stands. The last four are final.
type State string

// The states, in the order of a task's life.
const (
	Pending   State = "pending"  // nobody has begun, or it waits for memory
	Assigned  State = "assigned" // an attempt is being made, or waited for
	Running   State = "running"  // its program runs, or its end is being made certain
	Completed State = "completed"
	Failed    State = "failed"
	Stopped   State = "stopped"
	TimedOut  State = "timed_out"
)

// States lists every state.
func States() []State {
	return []State{Pending, Assigned, Running, Completed, Failed, Stopped, TimedOut}
}

// Final says that the task has ended and never changes again.
func (s State) Final() bool {
	switch s {
	case Completed, Failed, Stopped, TimedOut:
		return true
	case Pending, Assigned, Running:
	}
	return false
}

// Phase is what goes on inside running.
type Phase string

// The phases.
const (
	Working    Phase = ""           // the program runs, or what it made is being collected
	Publishing Phase = "publishing" // the gate was passed
	Stopping   Phase = "stopping"   // the end is decided, and its sandboxes are being ended
)

// Reason says why a task was ended before its program did.
type Reason string

// The reasons.
const (
	ReasonNone       Reason = ""
	ReasonStopped    Reason = "stopped"    // somebody asked
	ReasonCommand    Reason = "command"    // the program's time was over
	ReasonAttempt    Reason = "attempt"    // the attempt's time was over
	ReasonDeadline   Reason = "deadline"   // the task's time was over
	ReasonInactivity Reason = "inactivity" // it showed no life
	ReasonLost       Reason = "lost"       // who ran it is dead, and nobody can go on
)

// PublishState is how far a publication has come.
type PublishState string

// The states of a publication.
const (
	PublishNone    PublishState = ""          // the gate was not passed
	PublishBegun   PublishState = "begun"     // the gate was passed; what came of it is not known yet
	PublishDone    PublishState = "published" // seen to be done
	PublishRefused PublishState = "refused"   // seen not to be done, and it never will
	PublishNothing PublishState = "nothing"   // there was nothing to publish
	PublishUnknown PublishState = "unknown"   // it was begun, and nobody can tell any more
)

// Timers of DESIGN section 3 and tasks.md A4.
const (
	LeaseFor      = 30 * time.Second
	RenewEvery    = 5 * time.Second
	SettleLook    = time.Second            // between two looks for what a create may have made
	DeadManGrace  = 120 * time.Second      // the provider's own limit lies so far behind the attempt's
	MaxExtension  = 5                      // times the inactivity limit, however busy the silence is
	BusyShare     = 0.02                   // of a core: what counts as life in silence
	FirstLook     = 5 * time.Millisecond   // after the start
	SlowestLook   = 500 * time.Millisecond // for the end of a program
	EndWait       = 30 * time.Second       // for a sandbox's end to be seen
	EndPatience   = 5 * time.Minute        // for a sandbox's end before the next attempt is given up
	CreateGrace   = 5 * time.Second        // for a create's answer once it is no use any more
	LostAfter     = time.Hour              // a task that nobody goes on with, where its host or a deadline does not end it
	InfraAttempts = 3                      // faults of the infrastructure that burn no attempt
)

// The codes of `sbx run` beside the program's own (CLI.md).
const (
	CodeTimedOut = 124
	CodeNotRun   = 125
	CodeKilled   = 137
	CodeStopped  = 130
)

// ExitCode is what `sbx run` returns for a task that is over.
func (t *Task) ExitCode() int {
	switch t.State {
	case Completed:
		return 0
	case Stopped:
		return CodeStopped
	case TimedOut:
		return CodeTimedOut
	case Failed:
		return t.failureCode()
	case Pending, Assigned, Running:
	}
	return CodeNotRun
}

func (t *Task) failureCode() int {
	a := t.Last()
	if a == nil || a.Exit == nil || t.Publish.State == PublishRefused || t.Publish.State == PublishUnknown {
		return CodeNotRun
	}
	switch a.Exit.Class {
	case sandbox.ClassLauncher, sandbox.ClassAuth, sandbox.ClassInfra, sandbox.ClassTransport, sandbox.ClassGone:
		return CodeNotRun
	case sandbox.ClassOOM, sandbox.ClassKilledUnknown, sandbox.ClassKilledByUs:
		if a.Exit.Code == nil {
			return CodeKilled
		}
	case sandbox.ClassOK, sandbox.ClassAgentError, sandbox.ClassUsage, sandbox.ClassEnvironment, sandbox.ClassCrash,
		sandbox.ClassTimeout, sandbox.ClassStopped, sandbox.ClassUnknown:
	}
	if a.Exit.Code == nil || *a.Exit.Code < 1 || *a.Exit.Code > 255 {
		return CodeNotRun
	}
	return *a.Exit.Code
}
