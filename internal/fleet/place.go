package fleet

import (
	"context"
	"sync"

	"sbx/internal/providers"
)

// place is what one call, or one look, takes of what a provider may have at once. While it waits for one
// sandbox alone it moves to a place among those that wait: three hundred dead sandboxes, each of which
// takes a second to say so, must not hold up the others.
type place struct {
	waiting chan struct{} // one element for each that waits

	mu sync.Mutex
	in chan struct{} // where it counts: waiting, or what it was taken of; nil = it was released
}

// leave moves to a place among those that wait. Where none is free it keeps its own.
func (p *place) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil || p.in == p.waiting {
		return
	}
	select {
	case p.waiting <- struct{}{}:
		<-p.in
		p.in = p.waiting
	default:
	}
}

func (p *place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-p.in
	p.in = nil
}

type workerKey struct{}

// withWorker is the context of a look in a worker, which its calls leave with their slots.
func withWorker(ctx context.Context, leave func()) context.Context {
	return context.WithValue(ctx, workerKey{}, leave)
}

// takeSlot waits for a slot, for the calls of the returned context; release returns it.
func (m *member) takeSlot(ctx context.Context, op string) (in context.Context, release func(), err error) {
	select {
	case m.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, m.asFault(ctx, ctx.Err(), op)
	}
	p := &place{waiting: m.waiting, in: m.slots}
	if err := ctx.Err(); err != nil { // select chose between two ready cases
		p.release()
		return nil, nil, m.asFault(ctx, err, op)
	}
	return providers.WithSlot(ctx, func() {
		p.leave()
		if leave, has := ctx.Value(workerKey{}).(func()); has {
			leave()
		}
	}), p.release, nil
}

// inWorkers calls do for every item, at most n at once and as many more that have left their worker.
func inWorkers[T any](n int, items []T, do func(item T, leave func())) {
	working, waiting := make(chan struct{}, n), make(chan struct{}, n)
	var all sync.WaitGroup
	for _, item := range items {
		working <- struct{}{}
		p := &place{waiting: waiting, in: working}
		all.Go(func() {
			defer p.release()
			do(item, p.leave)
		})
	}
	all.Wait()
}
