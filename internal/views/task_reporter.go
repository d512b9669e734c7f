package views

import (
	"strconv"
	"sync"

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
