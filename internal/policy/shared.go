// Package policy holds the circuit breakers around the calls to one provider: that of one
// process, and the one that processes and hosts share through a store that is handed in.
//
// Providers, verbs, databases and the judgement of exits do not belong here: the caller
// says what counts. Retries, pace and deadlines of one request belong to httpx, the
// no-progress deadline and verification to fleet.
package policy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"sbx/internal/fault"
	"sbx/internal/poll"
)

// BreakerStore stores the states of shared breakers for all processes.
type BreakerStore interface {
	// LoadBreaker returns the state of a key. Where there is none its version is 0.
	LoadBreaker(ctx context.Context, key string) (BreakerState, error)
	// SwapBreaker replaces the state of that version; 0 = there must be none. False when
	// another process was faster.
	SwapBreaker(ctx context.Context, key string, body []byte, version int64) (swapped bool, err error)
}

// BreakerState is the stored state of a breaker.
type BreakerState struct {
	Body    []byte
	Version int64
	Now     time.Time // the store's clock at the reading, which all processes share
}

// Result is what a call shows about the provider. The caller maps exits and errors to it.
type Result int

// The results. A fault counts against the provider; neutral says nothing about it: an
// operator's stop, the program's own failure.
const (
	ResultNeutral Result = iota
	ResultGood
	ResultFault
)

// storePatience bounds one question to a store: a breaker must not itself wait for a store
// in trouble.
const storePatience = 2 * time.Second

// Shared is a circuit breaker whose state all processes and hosts share through a store. It
// opens when at least SharedFaults calls, and at least half of them, were faults within
// SharedWindow. Open, it refuses for SharedOpen; then exactly one process may probe. A good
// probe closes it, a failed one doubles the time.
//
// A store that fails or hangs makes the breaker inactive: calls are allowed and not
// counted, and SharedOptions.Notice reports it. A breaker must never be the reason that
// nothing works.
type Shared struct {
	store  BreakerStore
	notice func(string)
	aside  atomic.Bool
}

// SharedOptions are what a Shared needs beside its store.
type SharedOptions struct {
	// Notice is called when the store fails, once until a write succeeds again. It may be
	// called concurrently; nil = no report.
	Notice func(text string)
}

// NewShared makes a breaker over a store. It asks nothing yet.
func NewShared(store BreakerStore, o SharedOptions) *Shared {
	notice := o.Notice
	if notice == nil {
		notice = func(string) {}
	}
	return &Shared{store: store, notice: notice}
}

// Permit is the permission for one call; Done takes its result. The zero Permit is not
// counted.
type Permit struct {
	shared     *Shared
	key        string
	generation int64
	probe      bool
	done       *atomic.Bool
}

// Probe reports whether this call decides if others may follow. It has SharedProbe; after
// that another process may probe.
func (p Permit) Probe() bool { return p.probe }

// Allow reports whether a call may be made. The key is "provider" or "provider/template";
// who names this process to the others. An open breaker is fault.KindRefused with ErrOpen
// inside, RetryAfter, and a hint with the figures and the time. The end of ctx is its own
// error; a store in trouble is none.
func (s *Shared) Allow(ctx context.Context, key, who string) (Permit, error) {
	permit := Permit{shared: s, key: key, done: new(atomic.Bool)}
	var refused error
	err := s.changeState(ctx, key, func(c circuit, now time.Time) (circuit, bool) {
		next, v := c.askPermission(who, now)
		if !v.allowed {
			refused = openError(key, c, v, now)
		}
		permit.generation, permit.probe = next.Generation, v.probe
		return next, v.probe
	})
	switch {
	case ctx.Err() != nil:
		if err == nil && permit.probe {
			_ = permit.Done(ctx, ResultNeutral) // otherwise its time ends
		}
		return Permit{}, fault.Placed(context.Cause(ctx), providerOf(key), "read the circuit breaker")
	case err != nil:
		return Permit{}, nil //nolint:nilerr // it steps aside, and Notice was told
	case refused != nil:
		return Permit{}, refused
	}
	return permit, nil
}

// Done takes the result of the call, also when ctx has ended. Only the first Done of a
// permit counts, so `defer p.Done(ctx, ResultNeutral)` releases a call without a result. A
// result after the breaker changed, or after another process took over the probe, is
// ignored. An error is fault.KindUnavailable: the result was not stored, and Notice was
// called; the call itself is not affected.
func (p Permit) Done(ctx context.Context, result Result) error {
	if p.shared == nil || p.done.Swap(true) || (result == ResultNeutral && !p.probe) {
		return nil
	}
	return p.shared.changeState(context.WithoutCancel(ctx), p.key, func(c circuit, now time.Time) (circuit, bool) {
		return c.withResult(p.generation, result, now)
	})
}

// changeState reads a state, applies step, and writes the result, until no other process
// was faster. A step that returns false writes nothing.
func (s *Shared) changeState(ctx context.Context, key string, step func(circuit, time.Time) (circuit, bool)) error {
	limit, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	for tries := 0; ; tries++ {
		swapped, err := s.tryChange(limit, key, step)
		switch {
		case err == nil && swapped:
			return nil
		case err == nil:
			if poll.Sleep(limit, time.Duration(tries)*time.Millisecond) != nil {
				err = errors.New("other processes changed it each time")
			}
		}
		if err != nil {
			return s.bypass(ctx, key, err)
		}
	}
}

// tryChange is one round of changeState; false when another process was faster.
func (s *Shared) tryChange(ctx context.Context, key string, step func(circuit, time.Time) (circuit, bool)) (bool, error) {
	kept, err := s.store.LoadBreaker(ctx, key)
	if err != nil {
		return false, err
	}
	next, changed := step(decodeCircuit(kept.Body), kept.Now)
	if !changed {
		return true, nil
	}
	body, err := json.Marshal(next)
	if err != nil {
		return false, err
	}
	swapped, err := s.store.SwapBreaker(ctx, key, body, kept.Version)
	if swapped && err == nil {
		s.aside.Store(false) // only a write shows that the store works: it may be read-only
	}
	return swapped, err
}

// bypass reports that the store does not serve the breaker. The end of the caller's own ctx
// says nothing about the store.
func (s *Shared) bypass(ctx context.Context, key string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !s.aside.Swap(true) {
		s.notice("the shared circuit breaker of " + key + " is bypassed: " + err.Error())
	}
	return fault.New(fault.KindUnavailable, "the result was not stored: %w", err).At(providerOf(key), "update the circuit breaker").
		WithHint("the call itself is not affected; check the store if this happens again")
}

// openError explains what was seen and until when the breaker is open.
func openError(key string, c circuit, v permission, now time.Time) error {
	again := now.Add(v.wait + time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
	next := "it is called again at " + again
	if timeUntil(c.OpenUntil, now, SharedOpenMax) == 0 {
		next = "one call by " + c.Probe.Who + " is testing it now; try again when that call has ended, at the latest at " + again
	}
	err := fault.New(fault.KindRefused, "%w", ErrOpen).At(providerOf(key), "").
		WithHint("%d of %d calls to %s failed within %s; %s, or choose another provider", c.Faults, c.Calls, key, SharedWindow, next)
	err.RetryAfter = v.wait
	return err
}

func providerOf(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}

// How many calls in a row must fail unanswered before a breaker opens, and for how long it
// stays open.
const (
	OpensAfter = 5
	StaysOpen  = 30 * time.Second
)

// Breaker stops calls to a provider that does not answer. Only fault.KindUnavailable
// counts: 404, 401 and 409 are answers, and the end of the caller's context says nothing
// about the provider. Errors about one sandbox (fault.AboutOneSandbox) count neither way.
type Breaker struct {
	name   string
	b      *gobreaker.TwoStepCircuitBreaker[any]
	opened atomic.Pointer[time.Time] // when it last opened
}

// NewBreaker makes a closed breaker for one profile.
func NewBreaker(name string) *Breaker {
	b := &Breaker{name: name}
	b.b = gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Name: name, MaxRequests: 1, Timeout: StaysOpen,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= OpensAfter },
		IsExcluded:   fault.AboutOneSandbox,
		IsSuccessful: func(err error) bool { return fault.KindOf(err) != fault.KindUnavailable },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.opened.Store(new(time.Now()))
			}
		},
	})
	return b
}

// OpenUntil is when an open breaker lets the next call through; zero = it is not open.
func (b *Breaker) OpenUntil() time.Time {
	opened := b.opened.Load()
	if opened == nil || b.b.State() != gobreaker.StateOpen {
		return time.Time{}
	}
	return opened.Add(StaysOpen)
}

// ErrOpen is inside the error of a call that was not made.
var ErrOpen = errors.New("it did not answer the last calls, so sbx pauses calls to it")

// Allow reports whether a call may be made, and returns the function for its result. An
// open breaker is fault.KindRefused with ErrOpen inside.
func (b *Breaker) Allow() (done func(error), err error) {
	done, err = b.b.Allow()
	if err != nil {
		return nil, fault.New(fault.KindRefused, "%w", ErrOpen).At(b.name, "").
			WithHint("the next call is after %s; `sbx doctor --provider %s` shows more", StaysOpen, b.name)
	}
	return done, nil
}
