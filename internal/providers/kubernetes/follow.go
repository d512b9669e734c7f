package kubernetes

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/poll"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

const (
	// unusedFollow is how long the pods of a sandbox are followed that nothing asks about.
	unusedFollow = time.Minute
	// trustedFollow is how long a watch may say that an end goes on without a read that says so, too: its connection may
	// be dead.
	trustedFollow = 2 * time.Second
	// firstMiss is how long the first event of a pod may take before its object is read.
	firstMiss = 500 * time.Millisecond
	// youngFollow is how long after a create a read of the exit waits for the log to be opened.
	youngFollow = time.Second
)

// follows are the sandboxes whose pods are followed by a watch, by id: those that this client has made. What a watch
// shows spares reads that would say that nothing has changed. It proves nothing: that a sandbox does not run any more,
// or is gone, and what a request is decided by, is read.
type follows struct {
	mu      sync.Mutex
	all     map[string]*follow
	next    time.Time // none begins before: the API refuses to watch
	closing bool
}

// follow is the watch of the pods of one sandbox.
type follow struct {
	of    *follows
	began time.Time
	cut   context.CancelFunc

	// Guarded by follows.mu.
	o       object // as it was read last; its pods are those of the watch
	pods    map[string]wireObject
	open    bool // the API has accepted it, and it goes on
	over    bool
	changed chan struct{} // closed at the next change
	users   int           // that follow its program
	unused  *time.Timer
	ending  bool      // its delete was accepted, and o is the answer
	readAt  time.Time // of the last read of what ends
}

// beginFollow follows the pods of an object that was just made. A watch without a version begins with what is there.
func (c *Client) beginFollow(ctx context.Context, o object) *follow {
	nonce := o.Metadata.Labels[sandbox.LabelNonce]
	c.follows.mu.Lock()
	defer c.follows.mu.Unlock()
	if nonce == "" || c.follows.closing || time.Now().Before(c.follows.next) {
		return nil
	}
	ctx, cut := context.WithCancel(context.WithoutCancel(ctx))
	f := &follow{of: &c.follows, began: time.Now(), cut: cut, o: o, pods: map[string]wireObject{}, changed: make(chan struct{})}
	f.unused = time.AfterFunc(unusedFollow, cut)
	if c.follows.all == nil {
		c.follows.all = map[string]*follow{}
	}
	id := idOf(o.kind, o.Metadata)
	c.follows.all[id] = f
	c.live.watches.Go(func() {
		defer cut()
		err := c.eachChange(ctx, podKind(), podKind().versions[0], url.Values{"labelSelector": {sandbox.LabelNonce + "=" + nonce}}, f.opened, f.take)
		c.API.Trace("! %s is followed no more: %v", id, err)
		f.end(id, httpx.Status(err) != 0 && fault.KindOf(err) != fault.KindUnavailable)
	})
	return f
}

func (f *follow) opened() {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.open = true
}

func (f *follow) take(event string, o *wireObject) error {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	switch {
	case event == bookmark, !o.isPodOf(f.o.Metadata.UID): // another may have the label
		return nil
	case event == deleted:
		delete(f.pods, o.Metadata.UID)
	default:
		f.pods[o.Metadata.UID] = *o
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// end says that a watch is over.
func (f *follow) end(id string, refused bool) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	f.open, f.over = false, true
	f.unused.Stop()
	close(f.changed)
	f.changed = make(chan struct{})
	if f.of.all[id] == f {
		delete(f.of.all, id)
	}
	if refused {
		f.of.next = time.Now().Add(refusedViews)
	}
}

func (all *follows) endAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closing = true
	for _, f := range all.all {
		f.cut()
	}
}

// now is the object with its pods; the lock is held.
func (f *follow) now() object {
	o := f.o
	o.pods = slices.SortedFunc(maps.Values(f.pods), func(a, b wireObject) int { return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp) })
	return o
}

// of finds the watch of a sandbox; the lock is held.
func (all *follows) of(id string) (*follow, bool) {
	f, has := all.all[id]
	if has && f.open && f.users == 0 {
		f.unused.Reset(unusedFollow)
	}
	return f, has && f.open
}

// running is a sandbox that runs by its watch and by the last read of it; false says nothing.
func (all *follows) running(id string) (object, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	f, has := all.of(id)
	if !has || f.ending {
		return object{}, false
	}
	o := f.now()
	state, _ := o.state()
	return o, state == sandbox.StateRunning && o.podRuns()
}

// isYoung says that a sandbox was made a moment ago.
func (all *follows) isYoung(id string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	f, has := all.of(id)
	return has && time.Since(f.began) < youngFollow
}

// hold keeps a watch while its program is followed, until release is called.
func (all *follows) hold(id string) (release func()) {
	all.mu.Lock()
	defer all.mu.Unlock()
	f, has := all.of(id)
	if !has {
		return func() {}
	}
	f.users++
	f.unused.Stop()
	return func() {
		all.mu.Lock()
		defer all.mu.Unlock()
		if f.users--; f.users == 0 && !f.over {
			f.unused.Reset(unusedFollow)
		}
	}
}

// noteRead keeps what a read of the object has given, with or without its pods.
func (all *follows) noteRead(id string, o object) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if f, has := all.of(id); has && f.o.Metadata.UID == o.Metadata.UID {
		f.o, f.readAt = o, time.Now()
	}
}

// noteDelete keeps what an accepted delete has answered.
func (all *follows) noteDelete(id string, answer wireObject) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if f, has := all.of(id); has && answer.Metadata.UID == f.o.Metadata.UID && answer.Metadata.DeletionTimestamp != nil {
		f.o.wireObject, f.ending, f.readAt = answer, true, time.Now()
	}
}

// stillEnds is a sandbox whose delete was accepted a moment ago, and whose pods are not gone; false says nothing.
func (all *follows) stillEnds(id string) (object, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	f, has := all.of(id)
	if !has || !f.ending || len(f.pods) == 0 || time.Since(f.readAt) > trustedFollow {
		return object{}, false
	}
	return f.now(), true
}

// see is what a watch shows, until the channel is closed.
func (all *follows) see(f *follow) (o object, changed <-chan struct{}) {
	all.mu.Lock()
	defer all.mu.Unlock()
	return f.now(), f.changed
}

func (all *follows) isOver(f *follow) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return f.over
}

// isEnding says that the delete of a sandbox was accepted whose pods are followed.
func (all *follows) isEnding(id string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	f, has := all.of(id)
	return has && f.ending
}

// podsOf are the pods of a sandbox by its watch; none says nothing.
func (all *follows) podsOf(id string) []wireObject {
	all.mu.Lock()
	defer all.mu.Unlock()
	f, has := all.of(id)
	if !has {
		return nil
	}
	return f.now().pods
}

// drop ends the watch of a sandbox that is gone.
func (all *follows) drop(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if f, has := all.all[id]; has {
		f.cut()
	}
}

// readFollowed is read for what a sandbox is asked that runs. The queries of a look that begin together share it.
func (c *Client) readFollowed(ctx context.Context, op, id string) (object, error) {
	if o, runs := c.follows.running(id); runs && ctx.Err() == nil {
		return o, nil
	}
	return wirekit.InLook(ctx, id, func() (object, error) { return c.read(ctx, op, id) })
}

// starting is the wait for the pod of an object that was just made.
type starting struct {
	c      *Client
	f      *follow // nil = its pods are not followed
	id     string
	pauses *poll.Backoff
	asked  bool // the object was read since its pod runs
	missed time.Duration
}

// look waits, and gives the object as it is then. Where a watch follows its pods, it is read when one of them runs, and
// now and then: its conditions may say why there is none, and the watch may miss its pods.
func (s *starting) look(ctx context.Context) (object, error) {
	if s.f == nil || s.c.follows.isOver(s.f) {
		return s.read(ctx, true)
	}
	late := time.NewTimer(s.missed)
	defer late.Stop()
	for {
		o, changed := s.c.follows.see(s.f)
		state, _ := o.state()
		switch {
		case s.c.follows.isOver(s.f):
			return s.read(ctx, true)
		case len(o.pods) == 0:
		case state == sandbox.StateRunning && o.podRuns(), slices.Contains(startFailures(), o.waitReason()):
			return o, nil
		case o.podRuns():
			if s.asked && s.pauses.Sleep(ctx) != nil {
				return o, wirekit.ContextFault(ctx)
			}
			s.asked = true
			now, err := s.c.readObject(ctx, "create", s.id)
			if err == nil {
				s.c.follows.noteRead(s.id, now)
				now, _ = s.c.follows.see(s.f)
			}
			return now, err
		case state.Ended(), state == sandbox.StateTerminating:
			return s.read(ctx, false)
		}
		select {
		case <-changed:
		case <-late.C:
			s.missed = trustedFollow
			now, err := s.read(ctx, false)
			if seen, _ := s.c.follows.see(s.f); len(now.pods) > len(seen.pods) { // they lack the label: a webhook may drop it
				s.c.follows.drop(s.id)
				s.f = nil
			}
			return now, err
		case <-ctx.Done():
			return o, wirekit.ContextFault(ctx)
		}
	}
}

func (s *starting) read(ctx context.Context, pause bool) (object, error) {
	if pause && s.pauses.Sleep(ctx) != nil {
		return object{}, wirekit.ContextFault(ctx)
	}
	o, err := s.c.read(ctx, "create", s.id)
	if err == nil {
		s.c.follows.noteRead(s.id, o)
	}
	return o, err
}
