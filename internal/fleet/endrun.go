package fleet

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// endRun is the part of one run that concerns one provider. It is canceled when the
// provider no longer answers, so that a silent provider costs its timeout once and not once
// per sandbox.
type endRun struct {
	m   *member
	cut context.CancelCauseFunc

	reads   chan struct{} // held by verifying reads while requests are still to be sent
	allSent chan struct{} // closed when all requests were sent
	unsent  atomic.Int64  // requests still to be sent

	mu             sync.Mutex
	lastAnswer     time.Time     // of the last answer
	endSeen        bool          // an end was seen
	shortestEnd    time.Duration // the shortest time from a request to its observed end
	longestRunning time.Duration // the longest time after which a sandbox was seen not to have ended
	precision      time.Duration // precision to which these two are measured
}

func newEndRun(m *member, cut context.CancelCauseFunc, targets int, near time.Duration) *endRun {
	l := &endRun{m: m, cut: cut, precision: near, reads: make(chan struct{}, max(1, cap(m.slots)/slotsPerRead)), allSent: make(chan struct{})}
	l.unsent.Store(int64(targets))
	return l
}

// slotsPerRead is the number of slots per verifying read that may run while requests are still
// to be sent: each verifying read that is too early costs a request.
const slotsPerRead = 16

// doneSending counts down the requests still to be sent.
func (l *endRun) doneSending() {
	if l.unsent.Add(-1) == 0 {
		close(l.allSent)
	}
}

// beginRead waits until a verifying read does not delay a request. The caller calls done
// afterwards; false when ctx has ended.
func (l *endRun) beginRead(ctx context.Context) (done func(), ok bool) {
	select {
	case <-l.allSent:
		return func() {}, true
	case l.reads <- struct{}{}:
		return func() { <-l.reads }, true
	case <-ctx.Done():
		return nil, false
	}
}

// maxFirstDelay limits the delay of the first verifying read.
const maxFirstDelay = 250 * time.Millisecond

// firstDelay is the delay of the first verifying read after a request: none until the time
// that an end takes at this provider is known; then between the last read that saw no end
// and the first that did, while a shorter delay may suffice. A read that is too early would
// keep others waiting for a slot.
func (l *endRun) firstDelay() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.endSeen:
		return min(l.longestRunning, maxFirstDelay)
	case l.shortestEnd-l.longestRunning > l.precision:
		return min((l.longestRunning+l.shortestEnd)/2, maxFirstDelay)
	}
	return min(l.shortestEnd, maxFirstDelay)
}

// recordRead records what a read at this time after the request has shown.
func (l *endRun) recordRead(after time.Duration, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !over:
		l.longestRunning = max(l.longestRunning, after)
	case !l.endSeen || after < l.shortestEnd:
		l.endSeen, l.shortestEnd = true, after
	}
}

type getCall func(context.Context, *member, string, func(context.Context) (sandbox.Sandbox, error)) (sandbox.Sandbox, error)

// timedGet reads a sandbox by callInSlot or callWithoutBreaker and returns when the read began.
func (l *endRun) timedGet(ctx context.Context, id string, ask getCall) (sandbox.Sandbox, time.Time, error) {
	var began time.Time
	got, err := ask(ctx, l.m, "get "+id, func(ctx context.Context) (sandbox.Sandbox, error) {
		began = time.Now()
		return l.m.getByID(ctx, id)
	})
	if !began.IsZero() {
		l.checkSilence(began, err)
	}
	return got, began, err
}

// sendTerminate sends the request with the options that sending returns just before. A
// terminate may hang where reads do not, so its time-out does not cancel the run.
func (l *endRun) sendTerminate(ctx context.Context, id string, sending func() providers.TerminateOptions) error {
	_, err := callInSlot(ctx, l.m, "terminate "+id, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.m.Provider.Terminate(ctx, id, sending())
	})
	return err
}

// checkSilence records an answer, or cancels the run: a read that began at began had no
// answer for the whole timeout, and neither had any other since.
func (l *endRun) checkSilence(began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch _, silent := errors.AsType[noProgressError](err); {
	case !silent:
		l.lastAnswer = time.Now()
	case l.lastAnswer.Before(began):
		l.cut(l.m.timeoutCause())
	}
}
