package launch

import (
	"slices"
	"sync"

	"sbx/internal/fault"
	"sbx/internal/task"
)

// jobOrder gives jobs in their order, each after those that it needs.
type jobOrder struct {
	changed chan struct{} // holds one word after each end

	mu      sync.Mutex
	waiting []BatchJob
	over    map[int]BatchOutcome // by Seq
}

func newJobOrder(jobs []BatchJob) *jobOrder {
	return &jobOrder{changed: make(chan struct{}, 1), waiting: slices.Clone(jobs), over: map[int]BatchOutcome{}}
}

// ended notes what became of a job.
func (o *jobOrder) ended(b BatchOutcome) {
	o.mu.Lock()
	o.over[b.Seq] = b
	o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default: // a word is there already
	}
}

// take is the next job that can be decided: blocked names one that it needs and that did not complete, nil = none.
// Without a job all wait for those that run, or, without left, there is none any more.
func (o *jobOrder) take() (job *BatchJob, blocked *BatchOutcome, left bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, j := range o.waiting {
		ready := true
		for _, seq := range j.Needs {
			got, over := o.over[seq]
			if over && got.Task.State != task.Completed {
				blocked = &got
				break
			}
			ready = ready && over
		}
		if ready || blocked != nil {
			o.waiting = slices.Delete(o.waiting, i, i+1)
			return &j, blocked, true
		}
	}
	return nil, nil, len(o.waiting) > 0
}

// offerNext gives the next job to a worker, or tells why it is not started. False = there is none any more, or
// nothing more is to be launched.
func (b *batch) offerNext(order *jobOrder, next chan<- BatchJob, outcomes chan<- BatchOutcome) bool {
	select {
	case <-b.stop:
		return false
	default:
	}
	job, blocked, left := order.take()
	switch {
	case blocked != nil:
		o := blockedOutcome(*job, *blocked)
		outcomes <- o
		order.ended(o)
	case job != nil:
		select {
		case next <- *job:
		case <-b.stop:
			return false
		}
	case left:
		select {
		case <-order.changed:
		case <-b.stop:
			return false
		}
	}
	return left
}

// blockedOutcome is the outcome of a job which needs one that did not complete.
func blockedOutcome(j BatchJob, need BatchOutcome) BatchOutcome {
	why := "did not complete"
	switch {
	case need.Blocked:
		why = "was not started"
	case need.Task.State == task.Failed:
		why = "failed"
	case need.Task.State == task.TimedOut:
		why = "timed out"
	case need.Task.State == task.Stopped:
		why = "was stopped"
	}
	err := fault.New(fault.KindPartial, "not started: it needs %s, which %s", need.Label, why)
	if need.Task.ID != "" {
		err = err.WithHint("`sbx tasks show %s` shows why; run the file again with --retry-failed", need.Task.ID)
	}
	return BatchOutcome{BatchJob: j, Blocked: true, Err: err, Verdict: err}
}
