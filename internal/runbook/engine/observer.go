package engine

import (
	"context"
	"sync"

	"sbx/internal/ops"
)

// Observer is what a run reports to, and through which it asks. Items are those of Start.
type Observer interface {
	ops.Observer
	// Attended says that a person can be asked.
	Attended() bool
	// Ask puts a question to a person, and gives what was typed. Answered is false where the input
	// ended without an answer, or nobody is there.
	Ask(ctx context.Context, q ops.Question) (text string, answered bool, err error)
}

// readObserver is what several reads at once report to: their warnings and their progress come one at a
// time, each warning once.
type readObserver struct {
	to Observer

	mu   sync.Mutex
	said map[string]bool
}

var _ ops.Observer = (*readObserver)(nil)

// Note drops what only the command of the operation has to say.
func (*readObserver) Note(string) {}

func (o *readObserver) Warn(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.said == nil {
		o.said = map[string]bool{}
	}
	if !o.said[text] {
		o.said[text] = true
		o.to.Warn(text)
	}
}

func (o *readObserver) Redact(text string) string { return o.to.Redact(text) }

// Progress is shown beside that of the step.
func (o *readObserver) Progress(label string) ops.Progress { //nolint:ireturn // as ops.Observer wants it
	o.mu.Lock()
	defer o.mu.Unlock()
	return readProgress{o, o.to.Progress(label)}
}

func (*readObserver) Item(any) {}

// readProgress is the progress of one read of several.
type readProgress struct {
	o  *readObserver
	to ops.Progress
}

func (p readProgress) Update(text string) {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	p.to.Update(text)
}

func (p readProgress) Done() {
	p.o.mu.Lock()
	defer p.o.mu.Unlock()
	p.to.Done()
}

// actObserver is what an operation that acts reports to.
type actObserver struct {
	Observer

	started func(runID string)
}

func (o *actObserver) Item(item any) {
	if s, ok := item.(ops.RunStarted); ok {
		o.started(s.RunID)
	}
	o.Observer.Item(item)
}
