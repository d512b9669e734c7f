package views

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/ops"
	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// TaskReporter passes on what a running task shows: its program's output where it belongs,
// and what becomes of it on stderr.
type TaskReporter struct {
	Pass func(text string, toStderr bool)
	Note func(text string)

	mu   sync.Mutex
	told map[string]bool
	shut bool
}

// NewTaskReporter shows one task on the streams of a printer.
func NewTaskReporter(p *output.Printer) *TaskReporter {
	return &TaskReporter{told: map[string]bool{}, Pass: p.Pass, Note: p.Note}
}

// Output implements task.Observer.
func (e *TaskReporter) Output(l sandbox.LogLine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.shut:
	case l.Gap != nil:
		e.Note(MissingOutput(l))
	default:
		e.Pass(l.Text, l.Stream == "stderr")
	}
}

// Message implements task.Observer.
func (e *TaskReporter) Message(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.shut {
		e.Note(text)
	}
}

// Changed implements task.Observer: each change is shown once.
func (e *TaskReporter) Changed(t task.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shut {
		return
	}
	if t.Waits != "" && t.Waits != "retry" {
		e.sayOnce("waits "+t.Waits, t.ID+" waits: "+t.Waits)
	}
	for _, a := range t.Attempts {
		n := strconv.Itoa(a.N)
		if a.Retry != nil && a.Retry.Again {
			e.sayOnce("again "+n, AttemptLine(a)+"; again in "+sandbox.FormatElapsed(a.Retry.Delay)+": "+a.Retry.Why)
		}
	}
	if t.Phase == task.Publishing {
		e.sayOnce("publishing", "publishing "+publishWay(t))
	}
	if !t.StopAt.IsZero() {
		e.sayOnce("stop", "stopped by "+t.StopBy+": it will not publish")
	}
}

func (e *TaskReporter) sayOnce(key, text string) {
	if !e.told[key] {
		e.told[key] = true
		e.Note(text)
	}
}

// Close ends the hearing: a stream that is cut off late says nothing any more.
func (e *TaskReporter) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = true
}

// ExitSummary is what the operator of a foreground run reads at its end.
func (r TaskRow) ExitSummary() []string {
	lines := []string{"task " + r.ID + ": " + ops.WithDetail(string(r.State), r.Detail())}
	if a := r.Last(); a != nil && r.State != task.Completed {
		lines = append(lines, AttemptLine(*a))
		lines = append(lines, r.failureLines()...)
	}
	if r.Spec.Publishes() {
		lines = append(lines, "publish: "+r.publishWords())
	}
	if r.Kept != nil {
		lines = append(lines, "kept: "+r.Kept.Ref.String()+" for "+sandbox.FormatElapsed(r.Kept.ExpiresAt.Sub(r.Now).Round(time.Second)))
	}
	if r.State != task.Completed || r.Kept != nil {
		for _, next := range r.nextCommands() {
			lines = append(lines, "next: "+next)
		}
	}
	return lines
}

// JoblogHead is GNU parallel's, and what it loses: each attempt has a line of its own.
const JoblogHead = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\tAttempt\tClass\tSandbox\tTask\n"

// JoblogLines are the lines of a task, one for each attempt.
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

// signalNumber is the signal that ended a program, decoded from 128+n; 0 = none.
func signalNumber(a task.Attempt) int {
	if a.Exit.Signal == "" || a.Exit.Code == nil || *a.Exit.Code <= 128 {
		return 0
	}
	return *a.Exit.Code - 128
}
