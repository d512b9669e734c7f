package kubernetes

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

// Times and limits of a view.
const (
	// longestSilence is how long a watch may bring neither an event nor a bookmark. An API server sends a bookmark
	// each minute (k8s.io/apiserver, storage/cacher, defaultBookmarkFrequency). Where it leaves one out, as 1.36 was
	// seen to do for the first, the list is read once more.
	longestSilence = 90 * time.Second
	unusedView     = 5 * time.Minute  // a view ends that no list has used for this time
	betweenViews   = 10 * time.Second // at least, from the start of a view to that of the next
	refusedViews   = 10 * time.Minute // the same after an API that refuses to watch
	longestEvent   = 4 << 20          // bytes; etcd takes objects of 1.5 MiB, which are longer as JSON
	mostViewed     = 50_000           // objects of one kind; more are listed each time
)

var (
	errSilentWatch = fmt.Errorf("no event and no bookmark for %s", longestSilence)
	errUnusedView  = fmt.Errorf("nothing has used it for %s", unusedView)
	errServed      = errors.New("the API serves other versions now")
	errViewTooBig  = fmt.Errorf("there are more than %d objects", mostViewed)
)

// live is the view of a client: what lists with providers.Query.Live show.
type live struct {
	mu      sync.Mutex // guards the fields and the view; never held during a request
	view    *view      // nil = none
	next    time.Time  // no view begins before
	told    bool       // that the API refuses to watch
	closed  bool
	watches sync.WaitGroup
}

// view is what one list has read, kept current by one watch for each kind. After any trouble it is dropped, since
// nobody knows which changes are missing.
type view struct {
	kinds   []*viewedKind
	opening int // watches that the API has not accepted yet
	unused  *time.Timer
	end     context.CancelFunc
}

// viewedKind is the objects of one kind in a view.
type viewedKind struct {
	kind    kind
	version string // "" = it is not served
	query   url.Values
	moment  string                 // that the list showed; "" = it showed several
	objects map[string]*wireObject // by unique id; the objects do not change
}

// objectReader gives the objects of a kind to take, until take returns false.
type objectReader func(ctx context.Context, op string, k kind, query url.Values, take func(wireObject) bool) error

// liveReader is what a list with Live reads: the view, or the API. The caller calls done after a complete list.
func (c *Client) liveReader(ctx context.Context) (read objectReader, done func()) {
	c.live.mu.Lock()
	v := c.live.view
	c.live.mu.Unlock()
	if v != nil && !c.stillServed(ctx, v) {
		c.endView(v, errServed)
	}
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	switch v := c.live.view; {
	case v != nil && v.opening == 0:
		v.unused.Reset(unusedView)
		return v.rows(), func() {}
	case v != nil, c.live.closed, time.Now().Before(c.live.next):
		return c.eachObject, func() {}
	}
	v = &view{}
	return c.readInto(v), func() { c.startView(ctx, v) }
}

// stillServed says that each kind is served in the version of the view, or still in none. An error of the API is
// for the list that follows.
func (c *Client) stillServed(ctx context.Context, v *view) bool {
	return !slices.ContainsFunc(v.kinds, func(w *viewedKind) bool {
		version, err := c.version(ctx, "list", w.kind)
		return err != nil || version != w.version
	})
}

// rows reads a view as it is now, in the order of the API. The lock is held.
func (v *view) rows() objectReader {
	now := map[string][]*wireObject{}
	for _, w := range v.kinds {
		now[w.kind.plural] = slices.SortedFunc(maps.Values(w.objects), func(a, b *wireObject) int {
			return cmp.Or(strings.Compare(a.Metadata.Name, b.Metadata.Name), strings.Compare(a.Metadata.UID, b.Metadata.UID))
		})
	}
	return func(_ context.Context, _ string, k kind, _ url.Values, take func(wireObject) bool) error {
		for _, o := range now[k.plural] {
			if !take(*o) {
				break
			}
		}
		return nil
	}
}

// readInto reads the API and keeps in the view what it gives.
func (c *Client) readInto(v *view) objectReader {
	return func(ctx context.Context, op string, k kind, query url.Values, take func(wireObject) bool) error {
		version, err := c.version(ctx, op, k)
		if err != nil {
			return err
		}
		w := &viewedKind{kind: k, version: version, query: query, objects: map[string]*wireObject{}}
		v.kinds = append(v.kinds, w)
		if version == "" {
			return nil
		}
		w.moment, err = c.eachObjectAt(ctx, op, c.path(k, version), query, func(o wireObject) bool {
			w.objects[o.Metadata.UID] = &o
			return take(o)
		})
		return err
	}
}

// startView starts the watches of a view that was read completely. It ends with Close, not with ctx.
func (c *Client) startView(ctx context.Context, v *view) {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	unfit := func(w *viewedKind) bool { return w.version != "" && w.moment == "" || len(w.objects) > mostViewed }
	if c.live.closed || c.live.view != nil || slices.ContainsFunc(v.kinds, unfit) {
		return
	}
	ctx, v.end = context.WithCancel(context.WithoutCancel(ctx))
	v.unused = time.AfterFunc(unusedView, func() { c.endView(v, errUnusedView) })
	c.live.view, c.live.next = v, time.Now().Add(betweenViews)
	for _, w := range v.kinds {
		if w.version != "" {
			v.opening++
			c.live.watches.Go(func() { c.endView(v, c.watch(ctx, v, w)) })
		}
	}
}

// endView drops a view, and its watches end. The next list reads the API.
func (c *Client) endView(v *view, why error) {
	if v == nil || !c.dropView(v) {
		return
	}
	c.API.Trace("! the watched view ends: %v", why)
	if httpx.Status(why) != 0 && fault.KindOf(why) != fault.KindUnavailable {
		c.viewRefused(why)
	}
}

// dropView is false where something else has dropped the view.
func (c *Client) dropView(v *view) bool {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	if c.live.view != v {
		return false
	}
	c.live.view = nil
	v.unused.Stop()
	v.end()
	return true
}

// viewRefused notes that the API refuses to watch, and says so once.
func (c *Client) viewRefused(why error) {
	c.live.mu.Lock()
	tell := !c.live.told && c.notice != nil
	c.live.told, c.live.next = true, time.Now().Add(refusedViews)
	c.live.mu.Unlock()
	if tell {
		c.notice(why.Error() + "; so each refresh reads the whole list")
	}
}

// watch keeps the objects of a kind current, and returns why it cannot any more.
func (c *Client) watch(ctx context.Context, v *view, w *viewedKind) error {
	query := url.Values{"resourceVersion": {w.moment}}
	maps.Copy(query, w.query)
	opened := func() {
		c.live.mu.Lock()
		v.opening--
		c.live.mu.Unlock()
	}
	return c.eachChange(ctx, w.kind, w.version, query, opened, func(event string, o *wireObject) error { return c.takeChange(w, event, o) })
}

// eachChange gives what a watch says, a bookmark without an object, and returns why it cannot go on. opened is called
// when the API has accepted it.
func (c *Client) eachChange(ctx context.Context, k kind, version string, query url.Values, opened func(), take func(event string, o *wireObject) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	query.Set("watch", "1")
	query.Set("allowWatchBookmarks", "true")
	s, err := c.API.Stream(ctx, httpx.Request{Op: "watch " + k.plural, Path: c.path(k, version), Query: query, Quiet: true})
	if err != nil {
		return err
	}
	defer func() { _ = s.Body.Close() }()
	opened()
	silence := time.AfterFunc(longestSilence, func() { cancel(errSilentWatch) })
	defer silence.Stop()
	lines := bufio.NewScanner(s.Body)
	lines.Buffer(nil, longestEvent)
	for lines.Scan() {
		silence.Reset(longestSilence)
		event, o, err := readChange(lines.Bytes())
		if err == nil {
			err = take(event, o)
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(context.Cause(ctx), lines.Err(), io.ErrUnexpectedEOF)
}

// readChange reads one line of a watch. Any error means that a change may be missing.
func readChange(line []byte) (event string, o *wireObject, err error) {
	var e wireWatchEvent
	if _, err := httpx.Decode(line, &e); err != nil {
		return "", nil, err
	}
	o = &wireObject{}
	switch e.Type {
	case bookmark:
		return e.Type, nil, nil
	case "ADDED", "MODIFIED", deleted:
		if _, err := httpx.Decode(e.Object, o); err != nil {
			return "", nil, err
		}
	case "ERROR": // with the code 410 where the moment of the list is too old
		var s wireStatus
		_ = json.Unmarshal(e.Object, &s) // another object has neither
		return "", nil, fmt.Errorf("the watch has failed: %s: %s", s.Reason, s.Message)
	default:
		return "", nil, fmt.Errorf("the watch has an event of the type %q", e.Type)
	}
	if o.Metadata.UID == "" {
		return "", nil, errors.New("the watch has an event without a unique id")
	}
	return e.Type, o, nil
}

// Events of a watch that are told apart.
const (
	bookmark = "BOOKMARK"
	deleted  = "DELETED"
)

// takeChange applies one event to a view.
func (c *Client) takeChange(w *viewedKind, event string, o *wireObject) error {
	c.live.mu.Lock()
	defer c.live.mu.Unlock()
	switch event {
	case bookmark:
		return nil
	case deleted:
		delete(w.objects, o.Metadata.UID)
		return nil
	}
	if w.objects[o.Metadata.UID] = o; len(w.objects) > mostViewed {
		return errViewTooBig
	}
	return nil
}

// Close ends the watches and closes idle connections.
func (c *Client) Close() {
	c.live.mu.Lock()
	c.live.closed = true
	v := c.live.view
	c.live.mu.Unlock()
	c.endView(v, context.Canceled)
	c.podWatches.stopAll()
	c.live.watches.Wait()
	c.Base.Close()
}
