package fleet

import (
	"context"
	"errors"
	"iter"
	"sync"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// ahead is how many listed sandboxes may wait for the consumer: two pages and
// more of every provider (at most 200 rows each), so that the next page is on its
// way while rows are printed, and few enough to stay small.
const ahead = 512

// List streams the sandboxes of every provider in the order in which they
// arrive. The failure of one provider is one *fault.Error in the stream, with
// Provider set, and does not end the others; a provider that is silent for its
// timeout fails alone. The listing is complete when no error was seen.
//
// When the consumer stops, every provider has been stopped before the loop
// ends.
func (f *Fleet) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(yield func(sandbox.Sandbox, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		stop := make(chan struct{})
		buffer := ahead
		if q.Limit > 0 {
			buffer = 0
		}
		found := make(chan listed, buffer)
		var readers sync.WaitGroup
		for _, m := range f.members {
			readers.Go(func() { m.list(ctx, q, found, stop) })
		}
		go func() {
			readers.Wait()
			close(found)
		}()
		defer func() {
			close(stop)
			cancel()
			for range found { // closed once every reader has returned
				continue
			}
		}()
		for l := range found {
			if !yield(l.item, l.err) {
				return
			}
		}
	}
}

type listed struct {
	item sandbox.Sandbox
	err  error
}

// list hands on one provider's listing until it ends or stop is closed. The end
// of ctx does not stop it: then its error still has to be told.
func (m *member) list(ctx context.Context, q providers.Query, found chan<- listed, stop <-chan struct{}) {
	for item, err := range watched(ctx, m, "list", func(ctx context.Context) iter.Seq2[sandbox.Sandbox, error] {
		return m.rows(ctx, q)
	}) {
		select {
		case found <- listed{item, err}:
		case <-stop:
			return
		}
	}
}

// Listing is a listing that was read to its end.
type Listing struct {
	Items  []sandbox.Sandbox
	Errors []error // each a *fault.Error with Provider set
}

// Complete says that every provider told everything. What is missing from an
// incomplete listing may well exist.
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
