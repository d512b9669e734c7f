package fleet

import (
	"context"
	"sync"
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

	mu       sync.Mutex
	heard    time.Time     // when the last answer came
	ended    bool          // an end was seen
	quickest time.Duration // the shortest time from a request to its end, as looked at
	longest  time.Duration // the longest time after which one was seen not to have ended
}

// headStart bounds how long the first look may be put off.
const headStart = 250 * time.Millisecond

// firstLook is when to look first after a request: at once, until it is known how
// long an end takes at this provider. Looks that can see nothing would keep others
// waiting for a slot.
func (l *line) firstLook() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return min(l.quickest, headStart)
	}
	return min(l.longest, headStart)
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
	return l.read(ctx, id, call[sandbox.Sandbox])
}

// again reads a sandbox that was asked to end, whatever the breaker says.
func (l *line) again(ctx context.Context, id string) (sandbox.Sandbox, error) {
	return l.read(ctx, id, persist[sandbox.Sandbox])
}

type asking func(context.Context, *member, string, func(context.Context) (sandbox.Sandbox, error)) (sandbox.Sandbox, error)

func (l *line) read(ctx context.Context, id string, ask asking) (sandbox.Sandbox, error) {
	var began time.Time
	got, err := ask(ctx, l.m, "get "+id, func(ctx context.Context) (sandbox.Sandbox, error) {
		began = time.Now()
		return l.m.Provider.Get(ctx, id)
	})
	if !began.IsZero() {
		l.judge(began, err)
	}
	return got, err
}

// terminate sends the request, calling sending just before. A request to end
// may hang where reads do not, so its silence does not cut the line.
func (l *line) terminate(ctx context.Context, id string, o providers.TerminateOptions, sending func()) error {
	_, err := call(ctx, l.m, "terminate "+id, func(ctx context.Context) (struct{}, error) {
		sending()
		return struct{}{}, l.m.Provider.Terminate(ctx, id, o)
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
