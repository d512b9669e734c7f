package launch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// Add puts a job at the end of the batch.
func (r *BatchRequest) Add(j BatchJob) error {
	j.Seq = len(r.Jobs) + 1
	j.work = j.Spec.Work()
	j.Label = cmp.Or(j.Label, j.Spec.Name, j.Key, strconv.Itoa(j.Seq))
	if err := r.distinguishKey(&j); err != nil {
		return fault.Placed(err, "", j.Place)
	}
	r.Jobs = append(r.Jobs, j)
	return nil
}

// distinguishKey keeps two tasks from being taken for one: those that differ only in what
// their variables are set to, which is kept nowhere. The same task written twice is
// two tasks.
func (r *BatchRequest) distinguishKey(j *BatchJob) error {
	for _, other := range r.Jobs {
		if other.Key != "" || j.Key != "" || other.work != j.work {
			continue
		}
		if !slices.Equal(other.Env, j.Env) {
			return fault.Usage("it differs from task %d only in the values of its environment", other.Seq).
				WithHint("give each of them a name or a key, so that a second run can tell them apart")
		}
		j.twin++
	}
	return nil
}

// keyOf is under what a job is kept: its own key, or one that its work makes. round
// grows with each --again.
func (r *BatchRequest) keyOf(j BatchJob, round int) string {
	if j.Key != "" {
		if round > 1 {
			return j.Key + "." + strconv.Itoa(round)
		}
		return j.Key
	}
	text := strings.Join([]string{r.Name, strconv.Itoa(round), j.work, strconv.Itoa(j.twin)}, "\x00")
	sum := sha256.Sum256([]byte(text))
	return "file-" + hex.EncodeToString(sum[:10])
}

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

// BatchTally counts what became of a batch.
type BatchTally struct {
	Jobs, Ended, Completed, Before, Failed int

	Blocked int         // were not started, since a job that they need did not complete
	codes   map[int]int // of those that failed
	first   error       // a verdict of the first that failed
}

func (t *BatchTally) addOutcome(o BatchOutcome) {
	t.Ended++
	switch {
	case o.Verdict == nil && o.Before:
		t.Completed++
		t.Before++
	case o.Verdict == nil:
		t.Completed++
	case o.Blocked:
		t.Blocked++
	default:
		t.Failed++
		t.codes[ExitCode(o.Verdict)]++
		t.first = cmp.Or(t.first, o.Verdict)
	}
}

// ExitCode is the code of a process that ends with this error.
func ExitCode(err error) int {
	if own, ok := errors.AsType[ProgramExit](err); ok {
		return own.Code
	}
	return fault.ExitCode(err)
}

// exitVerdict is the error that a batch's end is for the process: nothing when all is
// completed, the one thing that all failed with, else that a part of it failed.
func (t *BatchTally) exitVerdict(ctx context.Context) error {
	switch {
	case t.Failed+t.Blocked == 0 && t.Ended == t.Jobs:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case t.Failed == t.Jobs && len(t.codes) == 1:
		return t.first
	}
	return fault.New(fault.KindPartial, "%d of %d tasks did not complete", t.Jobs-t.Completed, t.Jobs).
		WithHint("`sbx tasks show TASK` shows the evidence; --retry-failed launches them again")
}

// Text is how far the batch is.
func (t *BatchTally) Text() string {
	words := []string{fmt.Sprintf("%d of %d done", t.Ended, t.Jobs)}
	if t.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", t.Failed))
	}
	if t.Blocked > 0 {
		words = append(words, fmt.Sprintf("%d not started", t.Blocked))
	}
	return strings.Join(words, ", ")
}
