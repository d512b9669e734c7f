package monotask

import (
	"context"
	"sync"
	"time"

	"sbx/internal/poll"
)

const (
	maxReads = 4                    // at the same time
	joinTime = 2 * time.Millisecond // that a read waits for callers to join: a tenth of a quick read
)

// sharedReads lets concurrent callers share one read. The read begins after each of them has
// called, so that its result is as recent as one of their own: a caller that comes while a read
// runs waits for the next one.
type sharedReads[T any] struct {
	running chan struct{} // has an element for each read that runs

	mu   sync.Mutex
	next *sharedRead[T] // has not begun; nil = no caller waits
}

type sharedRead[T any] struct {
	done     chan struct{}
	canceled bool // the context of the caller that made it ended; the result is not for others
	result   T
	err      error
}

func newSharedReads[T any]() *sharedReads[T] {
	return &sharedReads[T]{running: make(chan struct{}, maxReads)}
}

// read returns a result of ask that was requested after this call. The first caller that waits
// calls ask for all; when its context ends, another caller does.
func (s *sharedReads[T]) read(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		s.mu.Lock()
		o, first := s.next, s.next == nil
		if first {
			o = &sharedRead[T]{done: make(chan struct{})}
			s.next = o
		}
		s.mu.Unlock()
		if first {
			s.runShared(ctx, o, ask)
			return o.result, o.err
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
		if !o.canceled {
			return o.result, o.err
		}
	}
}

// runShared makes the read for all callers that come before it begins.
func (s *sharedReads[T]) runShared(ctx context.Context, o *sharedRead[T], ask func(context.Context) (T, error)) {
	defer close(o.done)
	begin := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.next = nil
	}
	_ = poll.Sleep(ctx, joinTime)
	select {
	case s.running <- struct{}{}:
		begin()
		o.result, o.err = ask(ctx)
		<-s.running
	case <-ctx.Done():
		begin()
		o.err = context.Cause(ctx)
	}
	o.canceled = ctx.Err() != nil
}
