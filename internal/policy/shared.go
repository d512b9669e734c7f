package policy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"sbx/internal/fault"
)

// BreakerStore keeps the states of shared breakers where all processes see them.
type BreakerStore interface {
	// LoadBreaker gives the state of a key. Where there is none its version is 0.
	LoadBreaker(ctx context.Context, key string) (BreakerState, error)
	// SwapBreaker replaces the state of that version; 0 = there must be none. False
	// when somebody else was faster.
	SwapBreaker(ctx context.Context, key string, body []byte, version int64) (swapped bool, err error)
}

// BreakerState is a breaker as a store keeps it.
type BreakerState struct {
	Body    []byte
	Version int64
	Now     time.Time // the store's clock at the reading, which all processes share
}

// Result is what a call said of the provider. Which exits and errors are which is
// the caller's decision.
type Result int

// The results. A fault counts against the provider; neutral is what says nothing of
// it: an operator's stop, the program's own failure.
const (
	ResultNeutral Result = iota
	ResultGood
	ResultFault
)

// storePatience is how long one question to a store may take. A breaker that waits
// for a store in trouble would itself be what does not answer.
const storePatience = 2 * time.Second

// Shared is a circuit breaker whose state all processes and hosts share through a
// store. It opens when SharedFaults calls or more, and at least half, were faults
// within SharedWindow. Open, it refuses for SharedOpen; then exactly one process
// may probe. A good probe closes it, a failed one doubles the time.
//
// A store that fails, hangs or lets nothing through makes the breaker step aside:
// calls are allowed and not counted, and SharedOptions.Notice tells so. A breaker
// must never be the reason that nothing works.
type Shared struct {
	store  BreakerStore
	notice func(string)
	aside  atomic.Bool
}

// SharedOptions is what a Shared needs beside its store.
type SharedOptions struct {
	// Notice is told when the store fails, once until a write succeeds again. It may be
	// called by several goroutines at once; nil = nobody listens.
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

// Permit is the leave for one call. Done takes its result. The zero Permit is one
// that nobody counts.
type Permit struct {
	shared     *Shared
	key        string
	generation int64
	probe      bool
	done       *atomic.Bool
}

// Probe says that this call is the one that decides whether others may follow. It
// has SharedProbe; after that its process counts as dead, and another may probe.
func (p Permit) Probe() bool { return p.probe }

// Allow says whether a call may be made. The key is "provider" or
// "provider/template"; who names this process to the others. An open breaker is
// fault.KindRefused with ErrOpen inside, RetryAfter, and a hint that says what was
// seen and until when. The end of ctx is its own error; a store in trouble is none.
func (s *Shared) Allow(ctx context.Context, key, who string) (Permit, error) {
	permit := Permit{shared: s, key: key, done: new(atomic.Bool)}
	var refused error
	err := s.change(ctx, key, func(c circuit, now time.Time) (circuit, bool) {
		next, v := c.ask(who, now)
		if !v.allowed {
			refused = refusal(key, c, v, now)
		}
		permit.generation, permit.probe = next.Generation, v.probe
		return next, v.probe
	})
	switch {
	case ctx.Err() != nil:
		s.release(ctx, permit, err)
		return Permit{}, fault.Placed(context.Cause(ctx), provider(key), "ask the breaker")
	case err != nil:
		return Permit{}, nil //nolint:nilerr // it steps aside, and Notice was told
	case refused != nil:
		return Permit{}, refused
	}
	return permit, nil
}

// release gives a probe back whose caller is gone.
func (s *Shared) release(ctx context.Context, p Permit, err error) {
	if err == nil && p.probe {
		_ = p.Done(ctx, ResultNeutral) // else it frees itself by time
	}
}

// Done takes the result of the call, also when ctx is over. Only the first Done of
// a permit counts, so `defer p.Done(ctx, ResultNeutral)` releases what nobody
// judged. A result that comes after the breaker changed, or after another process
// took over the probe, says nothing any more. An error is fault.KindUnavailable: the
// result was not kept, and Notice was told; it is no failure of the call.
func (p Permit) Done(ctx context.Context, result Result) error {
	if p.shared == nil || p.done.Swap(true) || (result == ResultNeutral && !p.probe) {
		return nil
	}
	return p.shared.change(context.WithoutCancel(ctx), p.key, func(c circuit, now time.Time) (circuit, bool) {
		return c.told(p.generation, result, now)
	})
}

// change reads a state, lets step decide, and writes what came out of it, again and
// again until nobody was faster. A step that says false writes nothing.
func (s *Shared) change(ctx context.Context, key string, step func(circuit, time.Time) (circuit, bool)) error {
	limit, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	for tries := 0; ; tries++ {
		swapped, err := s.try(limit, key, step)
		switch {
		case err == nil && swapped:
			return nil
		case err == nil:
			err = pause(limit, time.Duration(tries)*time.Millisecond)
		}
		if err != nil {
			return s.stepAside(ctx, key, err)
		}
	}
}

// try is one round of change; false when somebody else was faster.
func (s *Shared) try(ctx context.Context, key string, step func(circuit, time.Time) (circuit, bool)) (bool, error) {
	kept, err := s.store.LoadBreaker(ctx, key)
	if err != nil {
		return false, err
	}
	next, changed := step(decode(kept.Body), kept.Now)
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

// pause lets the others through.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return errors.New("others were faster all the time")
	case <-timer.C:
		return nil
	}
}

// stepAside tells that the store does not serve the breaker. The end of the
// caller's own ctx says nothing of the store.
func (s *Shared) stepAside(ctx context.Context, key string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !s.aside.Swap(true) {
		s.notice("the shared breaker of " + key + " steps aside, calls are made without it: " + err.Error())
	}
	return fault.New(fault.KindUnavailable, "the result was not kept: %w", err).At(provider(key), "tell the breaker").
		WithHint("the call itself is as it is; look after the store if this stays")
}

// refusal says what was seen and until when.
func refusal(key string, c circuit, v verdict, now time.Time) error {
	again := now.Add(v.wait + time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
	next := "it is asked again at " + again
	if left(c.OpenUntil, now, SharedOpenMax) == 0 {
		next = "one call by " + c.Probe.Who + " tries it now; ask again when that has ended, at the latest at " + again
	}
	err := fault.New(fault.KindRefused, "%w", ErrOpen).At(provider(key), "").
		WithHint("%d of %d calls to %s failed within %s; %s, or choose another provider", c.Faults, c.Calls, key, SharedWindow, next)
	err.RetryAfter = v.wait
	return err
}

func provider(key string) string {
	name, _, _ := strings.Cut(key, "/")
	return name
}
