package task

import (
	"time"

	"sbx/internal/sandbox"
)

// State is the state of a task. The last four are final.
type State string

// The states, in the order of a task's life.
const (
	Pending   State = "pending"  // no attempt has begun, or it waits for memory
	Assigned  State = "assigned" // an attempt is being made, or waited for
	Running   State = "running"  // its program runs, or its end is being verified
	Completed State = "completed"
	Failed    State = "failed"
	Stopped   State = "stopped"
	TimedOut  State = "timed_out"
)

// States lists all states in the order of a task's life.
func States() []State {
	return []State{Pending, Assigned, Running, Completed, Failed, Stopped, TimedOut}
}

// Final reports whether the task has ended and never changes again.
func (s State) Final() bool {
	switch s {
	case Completed, Failed, Stopped, TimedOut:
		return true
	case Pending, Assigned, Running:
	}
	return false
}

// Phase divides the state running.
type Phase string

// The phases of running.
const (
	Working    Phase = ""           // the program runs, or its work is being collected
	Publishing Phase = "publishing" // the gate was passed
	Stopping   Phase = "stopping"   // the end is decided, and its sandboxes are being ended
)

// Reason is why a task was ended before its program ended.
type Reason string

// The reasons.
const (
	ReasonNone       Reason = ""
	ReasonStopped    Reason = "stopped"    // a stop was asked for
	ReasonCommand    Reason = "command"    // the program's time was over
	ReasonAttempt    Reason = "attempt"    // the attempt's time was over
	ReasonDeadline   Reason = "deadline"   // the task's time was over
	ReasonInactivity Reason = "inactivity" // it showed no activity
	ReasonLost       Reason = "lost"       // its owner is dead, and no process can go on
)

// PublishState is the progress of a publication.
type PublishState string

// The states of a publication.
const (
	PublishNone    PublishState = ""          // the gate was not passed
	PublishBegun   PublishState = "begun"     // the gate was passed, and the result is not known yet
	PublishDone    PublishState = "published" // seen to be done
	PublishRefused PublishState = "refused"   // seen not to be done, for ever
	PublishNothing PublishState = "nothing"   // there was nothing to publish
	PublishUnknown PublishState = "unknown"   // it was begun, and its result cannot be known any more
)

// Timers and bounds.
const (
	LeaseFor      = 30 * time.Second
	RenewEvery    = 5 * time.Second
	SettleLook    = time.Second            // between two searches for what a create may have made
	DeadManGrace  = 120 * time.Second      // from the attempt's limit to the provider's own
	MaxExtension  = 5                      // times the inactivity limit, however active a silent program is
	BusyShare     = 0.02                   // of a core: what counts as activity
	FirstLook     = 5 * time.Millisecond   // for the end of a program, after the start
	SlowestLook   = 500 * time.Millisecond // for the end of a program, later
	EndWait       = 30 * time.Second       // until a sandbox's end is seen
	EndPatience   = 5 * time.Minute        // until a sandbox's end is seen, before the next attempt is given up
	CreateGrace   = 5 * time.Second        // for a create's answer that is not needed any more
	LostAfter     = time.Hour              // until a task without an owner is ended, where neither its host nor a deadline does so
	InfraAttempts = 3                      // faults of the infrastructure that are not counted as attempts
)

// The exit codes of `sbx run` beside the program's own.
const (
	CodeTimedOut = 124
	CodeNotRun   = 125
	CodeKilled   = 137
	CodeStopped  = 130
)

// ExitCode is the exit code of `sbx run` for a task that is over.
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
