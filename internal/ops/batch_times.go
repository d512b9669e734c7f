package ops

import (
	"sync"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// outputTimes measures how long the program of a task's last attempt is silent at first.
type outputTimes struct {
	TaskObserver

	mu      sync.Mutex
	began   time.Time // when the attempt's program ran, by this process's clock
	first   time.Time // its first output
	attempt int       // whose times these are
}

// Output implements task.Observer.
func (o *outputTimes) Output(line sandbox.LogLine) {
	o.mu.Lock()
	if o.first.IsZero() {
		o.first = time.Now()
	}
	o.mu.Unlock()
	o.TaskObserver.Output(line)
}

// Changed implements task.Observer.
func (o *outputTimes) Changed(t task.Task) {
	o.mu.Lock()
	if a := t.Last(); t.State == task.Running && a != nil && a.N != o.attempt {
		o.attempt, o.began, o.first = a.N, time.Now(), time.Time{}
	}
	o.mu.Unlock()
	o.TaskObserver.Changed(t)
}

// FirstOutput is how long the last attempt's program was silent at first; false where it
// never began or never wrote.
func (o BatchOutcome) FirstOutput() (time.Duration, bool) {
	if o.times == nil {
		return 0, false
	}
	o.times.mu.Lock()
	defer o.times.mu.Unlock()
	if o.times.began.IsZero() || o.times.first.IsZero() {
		return 0, false
	}
	return max(0, o.times.first.Sub(o.times.began)), true
}
