package e2b

import (
	"context"
	"maps"
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
	mu      sync.Mutex
	all     map[string]*recentRecord
	kept    map[string]keptRecord // of those that were asked inside
	dropped time.Time             // when old ones of kept were dropped
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

const (
	// keptFor is how old the record of a running sandbox may be by which it is asked inside while the API is away.
	keptFor = time.Minute
	// keptPatience is how long the API is waited for where such a record is kept, and keptPause how long after a
	// failure it is not asked again: one question inside needs the record several times.
	keptPatience, keptPause = 3 * time.Second, time.Second
	// mostKept is how many records are kept before old ones are dropped, once in dropEvery: a look at ten thousand keeps
	// as many.
	mostKept, dropEvery = 64, keptFor / 4
)

// keptRecord is the record of a running sandbox that was read to ask inside.
type keptRecord struct {
	record         wireSandbox
	readAt, failed time.Time
}

// insideRecord is what read gives of a sandbox that is to be asked inside. While the API is away, which says nothing of
// the sandbox, its record serves that was read at most keptFor ago: its host and its token are the same. One that may
// have been paused since by its own time limit, or that traffic would wake, is not asked.
func (c *Client) insideRecord(ctx context.Context, id string, read func(context.Context, string) (wireSandbox, error)) (wireSandbox, error) {
	old, has := c.recent.keptOf(id)
	has = has && c.Now().Before(old.record.EndAt)
	if has && time.Since(old.failed) < keptPause {
		return old.record, nil
	}
	asked := ctx
	if has {
		var cancel context.CancelFunc
		asked, cancel = context.WithTimeout(ctx, keptPatience)
		defer cancel()
	}
	w, err := read(asked, id)
	away := err != nil && (fault.Retryable(err) || asked.Err() != nil)
	switch {
	case err == nil && w.State == "running" && !w.Lifecycle.AutoResume:
		c.recent.keep(id, keptRecord{record: w, readAt: time.Now()})
	case ctx.Err() != nil, away && !has:
	case away:
		old.failed = time.Now()
		c.recent.keep(id, old)
		return old.record, nil
	default:
		c.recent.forget(id)
	}
	return w, err
}

// keptOf is the kept record of a sandbox, while it may serve.
func (r *recentRecords) keptOf(id string) (keptRecord, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, has := r.kept[id]
	return old, has && !old.tooOld()
}

func (k keptRecord) tooOld() bool { return time.Since(k.readAt) > keptFor }

func (r *recentRecords) keep(id string, k keptRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[string]keptRecord{}
	}
	if len(r.kept) >= mostKept && time.Since(r.dropped) > dropEvery {
		r.dropped = time.Now()
		maps.DeleteFunc(r.kept, func(_ string, old keptRecord) bool { return old.tooOld() })
	}
	r.kept[id] = k
}

func (r *recentRecords) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, id)
}
