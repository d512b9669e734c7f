package fleet

import (
	"context"
	"iter"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Connection is what this process has seen of how a provider answers.
type Connection struct {
	CompleteAt time.Time     // when the last complete listing was read; zero = none was
	Took       time.Duration // that listing, from the request to the last row
	OpenUntil  time.Time     // when the circuit breaker lets the next call through; zero = it is closed
	Skew       time.Duration // how far its clock is ahead of this machine's; 0 also where that is not known
	Err        error         // of the newest listing or call that the circuit breaker counts; nil = it succeeded
}

// Connection returns what is known of a profile, without a request; of an unknown one nothing is.
func (f *Fleet) Connection(profile string) Connection {
	m, err := f.findMember(profile)
	if err != nil {
		return Connection{}
	}
	c := m.answers.current()
	c.OpenUntil = m.breaker.OpenUntil()
	c.Skew, _ = f.Skew(profile)
	return c
}

// answers are the outcomes of the requests to one provider, as Connection has them.
type answers struct {
	mu   sync.Mutex
	last Connection
}

func (a *answers) current() Connection {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// noteCall keeps the outcome of a call that the circuit breaker counts. Other outcomes say nothing about the provider.
func (a *answers) noteCall(err error) {
	unavailable := fault.KindOf(err) == fault.KindUnavailable && !fault.AboutOneSandbox(err)
	if err != nil && !unavailable {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last.Err = err
}

// noteListing passes a listing of everything on, and takes its outcome unless its consumer or ctx stops it.
func (a *answers) noteListing(ctx context.Context, now func() time.Time, rows iter.Seq2[sandbox.Sandbox, error]) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		began := time.Now()
		var failed error
		for s, err := range rows {
			if err != nil {
				failed = err
			}
			if !yield(s, err) {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.last.Err = failed; failed == nil {
			a.last.CompleteAt, a.last.Took = now(), time.Since(began)
		}
	}
}
