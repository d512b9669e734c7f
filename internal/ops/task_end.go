package ops

import (
	"errors"
	"fmt"

	"sbx/internal/fault"
	"sbx/internal/task"
)

// ProgramExit is the exit of a program that sbx ran for the operator: the
// process returns its code, and nothing is printed about it.
type ProgramExit struct{ Code int } //nolint:errname // no error of sbx, but a result

// Error says how the program ended.
func (e ProgramExit) Error() string { return fmt.Sprintf("the program exited with %d", e.Code) }

// TaskVerdict is the error that a task's end is for the process (CLI.md, exit codes).
func TaskVerdict(t task.Task, err error) error {
	if err != nil && (!errors.Is(err, task.ErrUnverified) || t.Verdict == task.Completed || t.Verdict == "") {
		return err
	}
	over := t
	if !over.State.Final() {
		over.State = t.Verdict
	}
	op := "task " + t.ID
	switch code := over.ExitCode(); {
	case code == 0:
		return nil
	case over.State == task.TimedOut:
		return fault.New(fault.KindTimeout, "its %s limit was reached", t.Reason).At("", op).WithHint("`sbx tasks show %s` has the evidence", t.ID)
	case over.State == task.Stopped:
		return fault.New(fault.KindCanceled, "stopped by %s", t.StopBy).At("", op)
	case code == task.CodeNotRun:
		return fault.New(fault.KindLauncher, "%s", notRunWords(t)).At("", op).WithHint("`sbx tasks show %s` has the evidence", t.ID)
	}
	if a := over.Last(); a != nil && a.Fault != "" { // sbx says it: no program was there to
		return fault.New(fault.Kind(a.Fault), "%s", notRunWords(t)).At("", op)
	}
	return ProgramExit{Code: over.ExitCode()}
}

func notRunWords(t task.Task) string {
	why := t.Refused
	if a := t.Last(); a != nil && a.Exit != nil {
		for _, e := range a.Exit.Evidence {
			if e.What == "create" {
				return e.Value
			}
		}
	}
	if why == "" {
		why = "it did not run"
	}
	return why
}
