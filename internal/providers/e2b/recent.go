package e2b

import (
	"context"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

// recentFor is how long the record of a sandbox serves a second look at the same sandbox: looks at
// its log, its processes and its usage begin together. Short, since a sandbox that is paused
// meanwhile must not be asked inside.
const recentFor = 200 * time.Millisecond

// recentRecords are the records that looks have read just now. A read that must be fresh, such as
// Get, does not use them.
type recentRecords struct {
	mu  sync.Mutex
	all map[string]*recentRecord
}

// recentRecord is one read. Its fields hold once done is closed.
type recentRecord struct {
	done   chan struct{}
	record wireSandbox
	err    error
}

// recordNote is the place of a sandbox's record in the notes of a look, samplesNote that of noSamples.
type (
	recordNote  string
	samplesNote string
)

// noSamples says since when a sandbox has none, or why: the API lacks the route.
type noSamples struct {
	since time.Time
	err   error
}

// lookDetail is detail for the queries of a look. Once nothing is asked inside any more, the record that
// the look has read serves them, however old it is.
func (c *Client) lookDetail(ctx context.Context, id string) (wireSandbox, error) {
	notes := httpx.LookNotes(ctx)
	if notes == nil {
		return c.sharedDetail(ctx, id)
	}
	if kept, has := notes.Load(recordNote(id)); has && fault.IsDefinite(httpx.LookAnswer(ctx)) {
		w, _ := kept.(wireSandbox)
		return w, nil
	}
	w, err := c.sharedDetail(ctx, id)
	if err == nil {
		notes.Store(recordNote(id), w)
	}
	return w, err
}

// sharedDetail is detail for looks that begin together; the second one shares the read of the first.
func (c *Client) sharedDetail(ctx context.Context, id string) (wireSandbox, error) {
	c.recent.mu.Lock()
	shared, known := c.recent.all[id]
	if !known {
		shared = &recentRecord{done: make(chan struct{})}
		if c.recent.all == nil {
			c.recent.all = map[string]*recentRecord{}
		}
		c.recent.all[id] = shared
	}
	c.recent.mu.Unlock()
	if known {
		select {
		case <-shared.done:
			if shared.err == nil {
				return shared.record, nil
			}
		case <-ctx.Done():
		}
		return c.detail(ctx, id) // the other caller may have been interrupted
	}
	shared.record, shared.err = c.detail(ctx, id)
	close(shared.done)
	time.AfterFunc(recentFor, func() {
		c.recent.mu.Lock()
		defer c.recent.mu.Unlock()
		delete(c.recent.all, id)
	})
	return shared.record, shared.err
}
