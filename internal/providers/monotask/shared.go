package monotask

import (
	"context"
	"sync"
	"time"
)

const (
	together = 4                    // reads of one thing under way
	company  = 2 * time.Millisecond // that a read waits for others to join: a tenth of a quick one
)

// shared lets those who want the same thing at the same time share a read of it. The
// read begins after each of them came, so that its answer is as fresh as one of their
// own: who comes while one is under way waits for the next.
type shared[T any] struct {
	turn chan struct{} // held by reads that are under way

	mu   sync.Mutex
	next *once[T] // has not begun; nil = nobody waits
}

// once is one read.
type once[T any] struct {
	over chan struct{}
	cut  bool // whoever made it was cut off, which says nothing to the others
	got  T
	err  error
}

func newShared[T any]() *shared[T] { return &shared[T]{turn: make(chan struct{}, together)} }

// read gives what ask says after this call. The first who waits asks for all; when
// it is cut off, another one does.
func (s *shared[T]) read(ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	for {
		s.mu.Lock()
		o, first := s.next, s.next == nil
		if first {
			o = &once[T]{over: make(chan struct{})}
			s.next = o
		}
		s.mu.Unlock()
		if first {
			s.lead(ctx, o, ask)
			return o.got, o.err
		}
		select {
		case <-o.over:
		case <-ctx.Done():
			var none T
			return none, context.Cause(ctx)
		}
		if !o.cut {
			return o.got, o.err
		}
	}
}

// lead reads for all who have come until its turn.
func (s *shared[T]) lead(ctx context.Context, o *once[T], ask func(context.Context) (T, error)) {
	defer close(o.over)
	begins := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.next = nil
	}
	timer := time.NewTimer(company)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	select {
	case s.turn <- struct{}{}:
		begins()
		o.got, o.err = ask(ctx)
		<-s.turn
	case <-ctx.Done():
		begins()
		o.err = context.Cause(ctx)
	}
	o.cut = ctx.Err() != nil
}
