package policy

import (
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"sbx/internal/fault"
)

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
	name string
	b    *gobreaker.TwoStepCircuitBreaker[any]
}

// NewBreaker makes a closed breaker for one profile.
func NewBreaker(name string) *Breaker {
	return &Breaker{name: name, b: gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Name: name, MaxRequests: 1, Timeout: StaysOpen,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= OpensAfter },
		IsExcluded:   fault.AboutOneSandbox,
		IsSuccessful: func(err error) bool { return fault.KindOf(err) != fault.KindUnavailable },
	})}
}

// ErrOpen is inside the error of a call that was not made.
var ErrOpen = errors.New("it did not answer the last calls, so it is left alone for a while")

// Allow reports whether a call may be made, and returns the function for its result. An
// open breaker is fault.KindRefused with ErrOpen inside.
func (b *Breaker) Allow() (done func(error), err error) {
	done, err = b.b.Allow()
	if err != nil {
		return nil, fault.New(fault.KindRefused, "%w", ErrOpen).At(b.name, "").
			WithHint("it is asked again after %s; `sbx doctor --provider %s` says more", StaysOpen, b.name)
	}
	return done, nil
}
