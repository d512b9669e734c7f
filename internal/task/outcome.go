package task

import "sbx/internal/sandbox"

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
