package fleet

import (
	"context"
	"iter"
	"time"
)

// watchdog ends a context when nothing has moved for a while.
type watchdog struct {
	timer *time.Timer
	after time.Duration
}

// guard gives a context that ends, with the member's silence as its cause, once
// its watchdog has not been fed for the member's timeout.
func (m *member) guard(ctx context.Context) (context.Context, *watchdog, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	dog := &watchdog{after: m.Timeout}
	dog.timer = time.AfterFunc(m.Timeout, func() { cancel(m.silent()) })
	return inner, dog, func() {
		dog.hold()
		cancel(context.Canceled)
	}
}

// hold stops the clock: it is the consumer's turn.
func (w *watchdog) hold() { w.timer.Stop() }

// feed starts the clock anew.
func (w *watchdog) feed() { w.timer.Reset(w.after) }

// watched reads a stream of a provider under its deadline of no progress. Time
// that the consumer takes does not count.
func watched[T any](ctx context.Context, m *member, op string, open func(context.Context) iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		inner, dog, stop := m.guard(ctx)
		defer stop()
		failed := false
		for item, err := range open(inner) {
			dog.hold()
			if err != nil {
				failed = true
				err = m.fault(inner, err, op)
			}
			if !yield(item, err) {
				return
			}
			dog.feed()
		}
		// What ends in silence as its context ends has not told everything.
		if inner.Err() != nil && !failed {
			var none T
			yield(none, m.fault(inner, inner.Err(), op))
		}
	}
}
