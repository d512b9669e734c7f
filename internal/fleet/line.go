package fleet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// line is the connection of one run to one provider. It is cut when the
// provider answers nothing any more, so that a silent one costs its timeout
// once and not once per sandbox.
type line struct {
	m   *member
	cut context.CancelCauseFunc

	looks chan struct{} // held by those who look for an end while others have not asked yet
	asked chan struct{} // closed when everybody has
	yet   atomic.Int64  // how many have not

	mu       sync.Mutex
	heard    time.Time     // when the last answer came
	ended    bool          // an end was seen
	quickest time.Duration // the shortest time from a request to its end, as looked at
	longest  time.Duration // the longest time after which one was seen not to have ended
	near     time.Duration // how well it has to be known
}

func newLine(m *member, cut context.CancelCauseFunc, targets int, near time.Duration) *line {
	l := &line{m: m, cut: cut, near: near, looks: make(chan struct{}, max(1, cap(m.slots)/looking)), asked: make(chan struct{})}
	l.yet.Store(int64(targets))
	return l
}

// looking is the share of the slots, as its inverse, that looks for an end may take
// while others wait to ask: those who have asked wait anyhow, and each look that
// comes too early costs a request.
const looking = 16

// left notes that one asks no more.
func (l *line) left() {
	if l.yet.Add(-1) == 0 {
		close(l.asked)
	}
}

// look waits until looking for an end keeps nobody from asking. It gives what to
// call afterwards; false when ctx has ended.
func (l *line) look(ctx context.Context) (done func(), ok bool) {
	select {
	case <-l.asked:
		return func() {}, true
	case l.looks <- struct{}{}:
		return func() { <-l.looks }, true
	case <-ctx.Done():
		return nil, false
	}
}

// headStart bounds how long the first look may be put off.
const headStart = 250 * time.Millisecond

// firstLook is when to look first after a request: at once, until it is known how
// long an end takes at this provider; then between the last look that saw none and the
// first that did, while a shorter wait might do. Looks that can see nothing would keep
// others waiting for a slot.
func (l *line) firstLook() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.ended:
		return min(l.longest, headStart)
	case l.quickest-l.longest > l.near:
		return min((l.longest+l.quickest)/2, headStart)
	}
	return min(l.quickest, headStart)
}

// learn notes what a look at this time after the request has shown.
func (l *line) learn(after time.Duration, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !over:
		l.longest = max(l.longest, after)
	case !l.ended || after < l.quickest:
		l.ended, l.quickest = true, after
	}
}

// get reads a sandbox before it is asked to end, unless the breaker is open.
func (l *line) get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	got, _, err := l.read(ctx, id, call[sandbox.Sandbox])
	return got, err
}

// again reads a sandbox that was asked to end, whatever the breaker says, and tells
// when it was asked for.
func (l *line) again(ctx context.Context, id string) (sandbox.Sandbox, time.Time, error) {
	return l.read(ctx, id, persist[sandbox.Sandbox])
}

type asking func(context.Context, *member, string, func(context.Context) (sandbox.Sandbox, error)) (sandbox.Sandbox, error)

func (l *line) read(ctx context.Context, id string, ask asking) (sandbox.Sandbox, time.Time, error) {
	var began time.Time
	got, err := ask(ctx, l.m, "get "+id, func(ctx context.Context) (sandbox.Sandbox, error) {
		began = time.Now()
		return l.m.getByID(ctx, id)
	})
	if !began.IsZero() {
		l.judge(began, err)
	}
	return got, began, err
}

// terminate sends the request, as sending says just before. A request to end may
// hang where reads do not, so its silence does not cut the line.
func (l *line) terminate(ctx context.Context, id string, sending func() providers.TerminateOptions) error {
	_, err := call(ctx, l.m, "terminate "+id, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, l.m.Provider.Terminate(ctx, id, sending())
	})
	return err
}

// judge notes an answer to a read, or cuts the line: a read that began at began
// heard nothing for the whole timeout, and neither did any other since.
func (l *line) judge(began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !isSilent(err):
		l.heard = time.Now()
	case l.heard.Before(began):
		l.cut(l.m.silent())
	}
}
