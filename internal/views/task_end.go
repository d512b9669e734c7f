package views

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/output"
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
	if !over.State.Over() {
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

// ExitSummary is what the operator of a foreground run reads at its end.
func (r TaskRow) ExitSummary() []string {
	lines := []string{"task " + r.ID + ": " + ops.WithDetail(string(r.State), r.Detail())}
	if a := r.Last(); a != nil && r.State != task.Completed {
		lines = append(lines, AttemptLine(*a))
		lines = append(lines, r.failure()...)
	}
	if r.Spec.Publishes() {
		lines = append(lines, "publish: "+r.publishWords())
	}
	if r.Kept != nil {
		lines = append(lines, "kept: "+r.Kept.Ref.String()+" for "+DurationText(r.Kept.ExpiresAt.Sub(r.Now).Round(time.Second)))
	}
	if r.State != task.Completed || r.Kept != nil {
		for _, next := range r.next() {
			lines = append(lines, "next: "+next)
		}
	}
	return lines
}

// JoblogHead is GNU parallel's, and what it loses: each attempt has a line of its own.
const JoblogHead = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\tAttempt\tClass\tSandbox\tTask\n"

func JoblogLines(t task.Task, seq int) string {
	var b strings.Builder
	for _, a := range t.Attempts {
		code, signal, class := "-1", "0", ""
		if a.Exit != nil {
			class = string(a.Exit.Class)
			if a.Exit.Code != nil {
				code = strconv.Itoa(*a.Exit.Code)
			}
			if n := signalNumber(a); n > 0 {
				code, signal = "0", strconv.Itoa(n)
			}
		}
		started := a.StartedAt
		if started.IsZero() {
			started = a.IntentAt
		}
		length, _ := AttemptLength(a)
		ref := ""
		if a.Sandbox != "" {
			ref = a.Ref().String()
		}
		command := output.EscapeLine(strings.ReplaceAll(strings.Join(t.Spec.Command, " "), "\t", " "))
		fmt.Fprintf(&b, "%d\t%s\t%.3f\t%.3f\t0\t0\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", cmp.Or(seq, a.N), a.Provider, float64(started.UnixMilli())/1000,
			length.Seconds(), code, signal, command, a.N, class, ref, t.ID)
	}
	return b.String()
}

// signalNumber is the signal that a program died of, as 128+n tells it; 0 = none.
func signalNumber(a task.Attempt) int {
	if a.Exit.Signal == "" || a.Exit.Code == nil || *a.Exit.Code <= 128 {
		return 0
	}
	return *a.Exit.Code - 128
}
