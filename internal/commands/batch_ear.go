package commands

import (
	"strings"
	"sync"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
	"sbx/internal/views"
)

// listener hears one task of several: each line says whose it is.
type listener struct {
	*views.TaskReporter

	mu      sync.Mutex
	began   time.Time // when the first attempt's program ran, by this process's clock
	spoke   time.Time // its first output
	attempt int       // whose times these are
}

func (c *crew) listen(j job) *listener {
	p, prefix := c.l.p, ""
	if c.width > 0 && c.many() {
		label := output.EscapeLine(j.label)
		prefix = label + strings.Repeat(" ", c.width-len(label)) + " | "
	}
	e := views.NewTaskReporter(p)
	e.Pass = func(text string, toStderr bool) { p.Pass(prefix+text, toStderr || c.tabled) }
	e.Note = func(text string) { p.Note(j.label + ": " + text) }
	return &listener{TaskReporter: e}
}

// many says that several tasks may speak at once.
func (c *crew) many() bool { return c.l.o.parallel > 1 || c.l.o.file == "" }

// Output is task.Ear's.
func (e *listener) Output(line sandbox.LogLine) {
	e.mu.Lock()
	if e.spoke.IsZero() {
		e.spoke = time.Now()
	}
	e.mu.Unlock()
	e.TaskReporter.Output(line)
}

// Changed is task.Ear's.
func (e *listener) Changed(t task.Task) {
	e.mu.Lock()
	if a := t.Last(); t.State == task.Running && a != nil && a.N != e.attempt {
		e.attempt, e.began, e.spoke = a.N, time.Now(), time.Time{}
	}
	e.mu.Unlock()
	e.TaskReporter.Changed(t)
}

// firstOutput is how long the last attempt's program was silent at first.
func (e *listener) firstOutput() (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.began.IsZero() || e.spoke.IsZero() {
		return 0, false
	}
	return max(0, e.spoke.Sub(e.began)), true
}
