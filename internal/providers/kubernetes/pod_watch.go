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
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

const (
	// unusedWatchLimit is how long a pod watch goes on that nothing asks.
	unusedWatchLimit = time.Minute
	// watchTrustedFor is how long a watch alone may show that nothing has changed. Then a read must say so, too: the
	// connection of the watch may be dead.
	watchTrustedFor = 2 * time.Second
	// logOpensWithin is how long after a create somebody may still open the log, which tells the exit, too.
	logOpensWithin = time.Second
)

// podWatches are the watches of the pods of sandboxes that this client has made. They only spare reads that would say
// that nothing has changed, and prove nothing: that a sandbox does not run any more, or is gone, and what a request is
// decided by, is read.
type podWatches struct {
	mu           sync.Mutex
	byID         map[string]*podWatch // by the id of the sandbox
	refusedUntil time.Time            // until then none begins: the API refuses to watch
	closing      bool
}

// podWatch is the watch of the pods of one sandbox.
type podWatch struct {
	all    *podWatches
	began  time.Time
	cancel context.CancelFunc

	// Guarded by podWatches.mu.
	object    object // as it was read last; its pods are in pods
	pods      map[string]wireObject
	open      bool          // the API has accepted the watch, and it goes on
	over      bool          // it has ended
	changed   chan struct{} // closed at the next change
	followers int           // readers of the log of the sandbox: while there is one, the watch stays
	unused    *time.Timer   // ends the watch
	ending    bool          // a delete of the object was accepted, and object is the answer
	readAt    time.Time     // of the last read of an object that is ending
}

// watchPods begins to watch the pods of an object that was just made; nil = they are not watched. A watch without a
// version begins with the pods that exist.
func (c *Client) watchPods(ctx context.Context, o object) *podWatch {
	nonce := o.Metadata.Labels[sandbox.LabelNonce]
	c.podWatches.mu.Lock()
	defer c.podWatches.mu.Unlock()
	if nonce == "" || c.podWatches.closing || time.Now().Before(c.podWatches.refusedUntil) {
		return nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &podWatch{all: &c.podWatches, began: time.Now(), cancel: cancel, object: o, pods: map[string]wireObject{}, changed: make(chan struct{})}
	w.unused = time.AfterFunc(unusedWatchLimit, cancel)
	if c.podWatches.byID == nil {
		c.podWatches.byID = map[string]*podWatch{}
	}
	id := idOf(o.kind, o.Metadata)
	c.podWatches.byID[id] = w
	c.live.watches.Go(func() {
		defer cancel()
		query := url.Values{"labelSelector": {sandbox.LabelNonce + "=" + nonce}}
		err := c.eachChange(ctx, podKind(), podKind().versions[0], query, w.setOpen, w.takeEvent)
		c.API.Trace("! %s is followed no more: %v", id, err)
		w.setOver(id, httpx.Status(err) != 0 && fault.KindOf(err) != fault.KindUnavailable)
	})
	return w
}

func (w *podWatch) setOpen() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.open = true
}

func (w *podWatch) takeEvent(event string, o *wireObject) error {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	switch {
	case event == bookmark, !o.isPodOf(w.object.Metadata.UID): // the pod of another object may have the label
		return nil
	case event == deleted:
		delete(w.pods, o.Metadata.UID)
	default:
		w.pods[o.Metadata.UID] = *o
	}
	w.notify()
	return nil
}

func (w *podWatch) setOver(id string, refused bool) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.open, w.over = false, true
	w.unused.Stop()
	w.notify()
	if w.all.byID[id] == w {
		delete(w.all.byID, id)
	}
	if refused {
		w.all.refusedUntil = time.Now().Add(refusedViews)
	}
}

// notify wakes who waits for a change; the lock is held.
func (w *podWatch) notify() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// snapshot is the object with its pods, the oldest first; the lock is held.
func (w *podWatch) snapshot() object {
	o := w.object
	o.pods = slices.SortedFunc(maps.Values(w.pods), func(a, b wireObject) int { return a.Metadata.CreationTimestamp.Compare(b.Metadata.CreationTimestamp) })
	return o
}

// current is what the watch shows, until changed is closed; over = it has ended and shows nothing more.
func (w *podWatch) current() (o object, changed <-chan struct{}, over bool) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.snapshot(), w.changed, w.over
}

// withOpen calls do with the open watch of a sandbox, if there is one, which stays open for another unusedWatchLimit.
func (all *podWatches) withOpen(id string, do func(*podWatch)) {
	all.mu.Lock()
	defer all.mu.Unlock()
	w, has := all.byID[id]
	if !has || !w.open {
		return
	}
	if w.followers == 0 {
		w.unused.Reset(unusedWatchLimit)
	}
	do(w)
}

// running gives a sandbox that runs by its watch and by the last read of it; false says nothing.
func (all *podWatches) running(id string) (o object, runs bool) {
	all.withOpen(id, func(w *podWatch) {
		if !w.ending {
			o = w.snapshot()
			state, _ := o.state()
			runs = state == sandbox.StateRunning && o.podRuns()
		}
	})
	return o, runs
}

// stillEnding gives a sandbox whose delete was accepted, which was read a moment ago, and whose pods are not gone; false
// says nothing.
func (all *podWatches) stillEnding(id string) (o object, ending bool) {
	all.withOpen(id, func(w *podWatch) {
		if ending = w.ending && len(w.pods) > 0 && time.Since(w.readAt) <= watchTrustedFor; ending {
			o = w.snapshot()
		}
	})
	return o, ending
}

// isEnding says that the delete of a sandbox was accepted whose pods are watched.
func (all *podWatches) isEnding(id string) (ending bool) {
	all.withOpen(id, func(w *podWatch) { ending = w.ending })
	return ending
}

// podsOf are the pods of a sandbox by its watch; none says nothing.
func (all *podWatches) podsOf(id string) (pods []wireObject) {
	all.withOpen(id, func(w *podWatch) { pods = w.snapshot().pods })
	return pods
}

// wasJustMade says that a sandbox was made so recently that its log may be about to be opened.
func (all *podWatches) wasJustMade(id string) (just bool) {
	all.withOpen(id, func(w *podWatch) { just = time.Since(w.began) < logOpensWithin })
	return just
}

// noteRead keeps what a read of the object has given, with or without its pods.
func (all *podWatches) noteRead(id string, o object) {
	all.withOpen(id, func(w *podWatch) {
		if w.object.Metadata.UID == o.Metadata.UID {
			w.object, w.readAt = o, time.Now()
		}
	})
}

// noteDelete keeps what an accepted delete has answered.
func (all *podWatches) noteDelete(id string, answer wireObject) {
	all.withOpen(id, func(w *podWatch) {
		if answer.Metadata.UID == w.object.Metadata.UID && answer.Metadata.DeletionTimestamp != nil {
			w.object.wireObject, w.ending, w.readAt = answer, true, time.Now()
		}
	})
}

// keepOpen keeps the watch of a sandbox while its log is followed, until release is called.
func (all *podWatches) keepOpen(id string) (release func()) {
	release = func() {}
	all.withOpen(id, func(w *podWatch) {
		w.followers++
		w.unused.Stop()
		release = w.releaseFollower
	})
	return release
}

func (w *podWatch) releaseFollower() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.followers--; w.followers == 0 && !w.over {
		w.unused.Reset(unusedWatchLimit)
	}
}

// stop ends the watch of a sandbox, such as one that is gone.
func (all *podWatches) stop(id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if w, has := all.byID[id]; has {
		w.cancel()
	}
}

// stopAll ends all watches, and lets none begin.
func (all *podWatches) stopAll() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.closing = true
	for _, w := range all.byID {
		w.cancel()
	}
}

// readIfNotWatched is readWithPods for what a running sandbox is asked: where a watch shows that it runs, it is not read.
// The queries of a look that begin together share one read.
func (c *Client) readIfNotWatched(ctx context.Context, op, id string) (object, error) {
	if o, runs := c.podWatches.running(id); runs && ctx.Err() == nil {
		return o, nil
	}
	return wirekit.InLook(ctx, id, func() (object, error) { return c.readWithPods(ctx, op, id) })
}
