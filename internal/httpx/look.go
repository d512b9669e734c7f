package httpx

import (
	"context"
	"errors"
	"sync"

	"sbx/internal/fault"
)

// look is what the requests of one look at one sandbox have found out for each other.
type look struct {
	mu     sync.Mutex
	inside error // what settles the requests into the sandbox; nil = nothing yet
	all    error // what settles every request
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
