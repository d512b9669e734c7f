package httpx

import (
	"context"
	"errors"
	"sync"
	"time"

	"sbx/internal/fault"
)

// look is what the requests of one look at one sandbox have found out for each other.
type look struct {
	mu     sync.Mutex
	inside error // what settles the requests into the sandbox; nil = nothing yet
	all    error // what settles every request
	notes  sync.Map
}

type lookKey struct{}

// Look marks the requests of one look at one sandbox. There a definite answer about the sandbox
// (Options.Definite) and no answer at all settle the rest: they are not repeated, and what is requested
// later fails with the same error and is not sent. What comes from inside (Request.OneSandbox) settles
// only that, since the API may still know more. Request.Fresh is always sent.
func Look(ctx context.Context) context.Context { return context.WithValue(ctx, lookKey{}, &look{}) }

// LookAnswer is the definite answer about the sandbox that the look of ctx has had; nil = none.
func LookAnswer(ctx context.Context) error {
	l, ok := ctx.Value(lookKey{}).(*look)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !fault.IsDefinite(l.inside) {
		return nil
	}
	return l.inside
}

// LookNotes are what a client has found out in the look of ctx for its later requests; nil = there is no look.
func LookNotes(ctx context.Context) *sync.Map {
	if l, ok := ctx.Value(lookKey{}).(*look); ok {
		return &l.notes
	}
	return nil
}

// settled is the error with which a request fails that need not be sent; nil = it is sent.
func settled(ctx context.Context, r Request) error {
	l, ok := ctx.Value(lookKey{}).(*look)
	if !ok || r.Fresh {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inside != nil && r.OneSandbox {
		return l.inside
	}
	return l.all
}

// settles notes in the look of ctx what an error means for its other requests, and marks the error.
func (c *Client) settles(ctx context.Context, r Request, err error) error {
	l, ok := ctx.Value(lookKey{}).(*look)
	f, known := err.(*fault.Error) //nolint:errorlint // the outermost one is shown
	if !ok || !known || fault.SettlesLook(err) {
		return err
	}
	own := *f // several requests may share it
	status := StatusOf(err)
	_, silent := errors.AsType[noAnswerError](err)
	own.Definite, own.Silent = status != nil && r.OneSandbox && c.o.Definite != nil && c.o.Definite(status), silent
	if !own.Definite && !own.Silent {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.OneSandbox {
		l.inside = r.markScope(&own)
	} else {
		l.all = &own
	}
	return &own
}

// Slot is the place of a call among those that a provider may have at once. Both methods may be called often
// and concurrently.
type Slot interface {
	Leave()                   // gives it up: what follows waits for one sandbox alone
	Return(c context.Context) // takes one again, or returns when c ends
}

type slotKey struct{}

// WithSlot gives a call the slot that it leaves as part of a look, while it waits for one sandbox alone: what is
// dead must not hold up the others.
func WithSlot(ctx context.Context, s Slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// LeaveSlot leaves the slot of a call in a look. The next request to the API returns to it.
func LeaveSlot(ctx context.Context) { withSlot(ctx, Slot.Leave) }

// withSlot calls do with the slot of a call in a look, if it has one.
func withSlot(ctx context.Context, do func(Slot)) {
	s, has := ctx.Value(slotKey{}).(Slot)
	if _, looks := ctx.Value(lookKey{}).(*look); has && looks {
		do(s)
	}
}

// slowAnswer is how long a request into a sandbox through the API may wait until it holds its slot no
// more: longer than a busy API takes, which must not get more requests because it is slow.
const slowAnswer = 300 * time.Millisecond

// inSlot is called before a request is sent, and answered with its answer: one to the API needs a slot, one
// into a sandbox leaves it while it waits.
func inSlot(ctx context.Context, r Request) (answered func()) {
	answered = func() {}
	withSlot(ctx, func(s Slot) {
		switch {
		case !r.OneSandbox:
			s.Return(ctx)
		case r.OwnHost:
			s.Leave()
		default:
			timer := time.AfterFunc(slowAnswer, s.Leave)
			answered = func() { timer.Stop() }
		}
	})
	return answered
}
