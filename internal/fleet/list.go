package fleet

import (
	"context"
	"errors"
	"iter"
	"sync"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// listBuffer is how many listed sandboxes may wait for the consumer: more than two pages of
// every provider (at most 200 rows each), so that the next page is fetched while rows are
// printed.
const listBuffer = 512

// List streams the sandboxes of every provider in the order of arrival. The failure of one
// provider is one *fault.Error in the stream, with Provider set, and does not end the
// others; a provider that is silent for its timeout fails alone. The listing is complete
// when no error was seen.
//
// When the consumer stops, every provider has been stopped before the loop ends.
func (f *Fleet) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		buffer := listBuffer
		if q.Limit > 0 {
			buffer = 0
		}
		found := make(chan listItem, buffer)
		var readers sync.WaitGroup
		for _, m := range f.members {
			readers.Go(func() { m.streamTo(ctx, q, found, stop) })
		}
		go func() {
			readers.Wait()
			close(found)
		}()
		forward(found, func() { close(stop); cancel() }, func(l listItem) bool { return yield(l.item, l.err) })
	}
}

// forward yields the items of a channel until it is closed or the consumer stops. Then it
// calls stop and discards the rest: the channel is closed once every sender has returned.
func forward[T any](items <-chan T, stop func(), yield func(T) bool) {
	defer func() {
		stop()
		for range items {
			continue
		}
	}()
	for item := range items {
		if !yield(item) {
			return
		}
	}
}

type listItem struct {
	item sandbox.Sandbox
	err  error
}

// streamTo sends one provider's listing until it ends or stop is closed. The end of ctx
// does not stop it: its error still has to be sent.
func (m *member) streamTo(ctx context.Context, q providers.Query, found chan<- listItem, stop <-chan struct{}) {
	for item, err := range m.streamRows(ctx, "list", q) {
		select {
		case found <- listItem{item, err}:
		case <-stop:
			return
		}
	}
}

// streamRows is listRows under the timeout of the provider.
func (m *member) streamRows(ctx context.Context, op string, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return streamWithTimeout(ctx, m, op, func(ctx context.Context) iter.Seq2[sandbox.Sandbox, error] { return m.listRows(ctx, q) })
}

// Listing is the result of a listing that was read to its end.
type Listing struct {
	Items  []sandbox.Sandbox
	Errors []error // each a *fault.Error with Provider set
}

// Complete reports whether every provider listed everything. What is missing from an
// incomplete listing may exist.
func (l Listing) Complete() bool { return len(l.Errors) == 0 }

// Err joins the errors: fault.KindPartial where kinds differ.
func (l Listing) Err() error { return errors.Join(l.Errors...) }

// Collect reads a listing to its end.
func (f *Fleet) Collect(ctx context.Context, q providers.Query) Listing {
	var l Listing
	for item, err := range f.List(ctx, q) {
		if err != nil {
			l.Errors = append(l.Errors, err)
			continue
		}
		l.Items = append(l.Items, item)
	}
	return l
}
