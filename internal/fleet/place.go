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
	home, waiting chan struct{} // one element for each that is there
	left          func()        // is told that it is left

	mu sync.Mutex
	in chan struct{} // home or waiting; nil = it was released
}

// Leave moves to a place among those that wait. Where none is free it keeps its own.
func (p *place) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left()
	if p.in != p.home {
		return
	}
	select {
	case p.waiting <- struct{}{}:
		<-p.home
		p.in = p.waiting
	default:
	}
}

// Return takes a place again that was left.
func (p *place) Return(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in != p.waiting {
		return
	}
	select {
	case p.home <- struct{}{}:
		<-p.waiting
		p.in = p.home
	case <-ctx.Done():
	}
}

func (p *place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	<-p.in
	p.in = nil
}

type workerKey struct{}

// withWorker is the context of a look in a worker. Its calls leave that with their slots; it is not taken again.
func withWorker(ctx context.Context, worker *place) context.Context {
	return context.WithValue(ctx, workerKey{}, worker)
}

// takeSlot waits for a slot, for the calls of the returned context; release returns it.
func (m *member) takeSlot(ctx context.Context, op string) (in context.Context, release func(), err error) {
	select {
	case m.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, m.asFault(ctx, ctx.Err(), op)
	}
	p := &place{home: m.slots, waiting: m.waiting, left: func() {}, in: m.slots}
	if worker, has := ctx.Value(workerKey{}).(*place); has {
		p.left = worker.Leave
	}
	if err := ctx.Err(); err != nil { // select chose between two ready cases
		p.release()
		return nil, nil, m.asFault(ctx, err, op)
	}
	return providers.WithSlot(ctx, p), p.release, nil
}

// inWorkers calls do for every item, at most n at once and as many more that have left their worker.
func inWorkers[T any](n int, items []T, do func(item T, worker *place)) {
	working, waiting := make(chan struct{}, n), make(chan struct{}, n)
	var all sync.WaitGroup
	for _, item := range items {
		working <- struct{}{}
		p := &place{home: working, waiting: waiting, left: func() {}, in: working}
		all.Go(func() {
			defer p.release()
			do(item, p)
		})
	}
	all.Wait()
}
