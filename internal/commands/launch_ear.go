package commands

import (
	"io"
	"sync"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// ear passes on what a running task shows: its program's output where it belongs,
// and what becomes of it on stderr.
type ear struct {
	p      *output.Printer
	stdout func(text string)
	stderr func(text string)
	note   func(text string)

	mu   sync.Mutex
	told map[string]bool
	shut bool
}

func newEar(d *Deps, p *output.Printer) *ear {
	e := &ear{p: p, told: map[string]bool{}, note: p.Note}
	e.stderr = func(text string) {
		_, _ = io.WriteString(d.Process.Stderr, output.EscapeLine(text)+"\n") // who closed it does not want it
	}
	e.stdout = func(text string) { _ = p.Line(text) } // likewise
	if !p.Format.Human() {
		e.stdout = e.stderr // stdout is for the document
	}
	return e
}

// Output is task.Ear's.
func (e *ear) Output(l sandbox.LogLine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.shut:
	case l.Stream == "stderr":
		e.stderr(l.Text)
	default:
		e.stdout(l.Text)
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
		n := string(rune('0' + a.N%10))
		if a.Retry != nil && a.Retry.Again {
			e.once("again "+n, attemptLine(a)+"; again in "+seconds(a.Retry.Delay)+": "+a.Retry.Why)
		}
	}
	if t.Phase == task.Publishing {
		e.once("publishing", "publishing to "+t.Publish.Target)
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
