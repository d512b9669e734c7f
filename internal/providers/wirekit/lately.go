package wirekit

import (
	"context"
	"sync"
	"time"

	"sbx/internal/httpx"
)

// LatelyFor is how old a read may be that the next step of the same act uses in place of its own.
const LatelyFor = 250 * time.Millisecond

// mostLately is how many reads are kept before those that are too old are dropped.
const mostLately = 64

// Lately keeps the answers of the last reads of single sandboxes, by id: an end reads its target right before the
// request, and once more right before the proof. The zero value is ready to use.
type Lately[T any] struct {
	mu  sync.Mutex
	all map[string]lateRead[T]
}

// lateRead is one read.
type lateRead[T any] struct {
	began time.Time
	got   T
	err   error // nil, or that there is no such sandbox
}

// Keep stores a read that began at a time. An error other than that of a missing sandbox tells nothing, and what was
// known before counts no more.
func (l *Lately[T]) Keep(id string, began time.Time, got T, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch known, has := l.all[id]; {
	case has && known.began.After(began):
		return
	case err != nil && !Missing(err):
		delete(l.all, id)
		return
	case l.all == nil:
		l.all = map[string]lateRead[T]{}
	case len(l.all) >= mostLately:
		for other, r := range l.all {
			if time.Since(r.began) > LatelyFor {
				delete(l.all, other)
			}
		}
	}
	l.all[id] = lateRead[T]{began, got, err}
}

// Last is what the last read gave, unless it began more than LatelyFor ago. Once ctx has ended nothing is known.
func (l *Lately[T]) Last(ctx context.Context, id string) (got T, known bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, has := l.all[id]
	if !has || ctx.Err() != nil || time.Since(r.began) > LatelyFor {
		return got, false, nil
	}
	return r.got, true, r.err
}

// Forget drops what is known of a sandbox, which a request has changed.
func (l *Lately[T]) Forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, id)
}

// InLook is read for a query of a look at one sandbox (httpx.Look): queries that begin together share the answer. An
// error is nobody else's.
func InLook[T any](ctx context.Context, id string, read func() (T, error)) (T, error) {
	notes := httpx.LookNotes(ctx)
	if notes == nil {
		return read()
	}
	key, mine := lookKey{id}, &lookRead[T]{began: time.Now(), done: make(chan struct{})}
	for {
		found, shared := notes.LoadOrStore(key, mine)
		known, is := found.(*lookRead[T])
		switch {
		case !shared:
			mine.got, mine.err = read()
			close(mine.done)
			return mine.got, mine.err
		case !is:
			return read()
		case time.Since(known.began) > LatelyFor:
			if notes.CompareAndDelete(key, found) {
				mine.began = time.Now()
			}
			continue
		}
		select {
		case <-known.done:
		case <-ctx.Done():
			return known.got, ContextFault(ctx)
		}
		if known.err != nil {
			return read()
		}
		return known.got, nil
	}
}

// NoteInLook keeps what a query has read for those of its look that begin next.
func NoteInLook[T any](ctx context.Context, id string, began time.Time, got T) {
	if notes := httpx.LookNotes(ctx); notes != nil {
		r := &lookRead[T]{began: began, done: make(chan struct{}), got: got}
		close(r.done)
		notes.Store(lookKey{id}, r)
	}
}

// lookKey is the place of a sandbox's record among the notes of a look.
type lookKey struct{ id string }

// lookRead is one read of a look. Its answer holds once done is closed.
type lookRead[T any] struct {
	began time.Time
	done  chan struct{}
	got   T
	err   error
}
