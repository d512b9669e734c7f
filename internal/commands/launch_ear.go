package commands

import (
	"strconv"
	"sync"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// ear passes on what a running task shows: its program's output where it belongs,
// and what becomes of it on stderr.
type ear struct {
	pass func(text string, toStderr bool)
	note func(text string)

	mu   sync.Mutex
	told map[string]bool
	shut bool
}

func newEar(p *output.Printer) *ear {
	return &ear{told: map[string]bool{}, pass: p.Pass, note: p.Note}
}

// Output is task.Ear's.
func (e *ear) Output(l sandbox.LogLine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.shut:
	case l.Gap != nil:
		e.note(missingOutput(l))
	default:
		e.pass(l.Text, l.Stream == "stderr")
	}
}

// Said is task.Ear's.
func (e *ear) Said(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.shut {
		e.note(text)
	}
}

// Changed is task.Ear's: each thing is said once.
func (e *ear) Changed(t task.Task) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shut {
		return
	}
	if t.Waits != "" && t.Waits != "retry" {
		e.once("waits "+t.Waits, t.ID+" waits: "+t.Waits)
	}
	for _, a := range t.Attempts {
		n := strconv.Itoa(a.N)
		if a.Retry != nil && a.Retry.Again {
			e.once("again "+n, attemptLine(a)+"; again in "+seconds(a.Retry.Delay)+": "+a.Retry.Why)
		}
	}
	if t.Phase == task.Publishing {
		e.once("publishing", "publishing "+publishWay(t))
	}
	if !t.StopAt.IsZero() {
		e.once("stop", "stopped by "+t.StopBy+": it will not publish")
	}
}

func (e *ear) once(key, text string) {
	if !e.told[key] {
		e.told[key] = true
		e.note(text)
	}
}

// close ends the hearing: a stream that is cut off late says nothing any more.
func (e *ear) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = true
}
