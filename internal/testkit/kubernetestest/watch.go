package kubernetestest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bookmarkEvery is the pace of bookmarks of kube-apiserver.
const bookmarkEvery = time.Minute

// change is one entry of the history that watches read.
type change struct {
	version       int
	plural        string
	before, after map[string]string // its labels; nil = it did not exist
	object        []byte            // of a deleted one the last state, with the version of the change
}

// shown is an object as the history has it.
type shown struct {
	labels map[string]string
	text   []byte
}

// changed says that objects may show something else. The lock is held.
func (f *Fake) changed() {
	f.dirty = true
	f.change.Broadcast()
}

// record adds to the history what has changed since the last call. What controllers derive from other objects, such
// as the status of a job, is a change of its own. The lock is held.
func (f *Fake) record() {
	if !f.dirty {
		return
	}
	f.dirty = false
	exists := map[*thing]bool{}
	for _, o := range f.things {
		exists[o] = true
	}
	f.shownOrder = slices.DeleteFunc(f.shownOrder, func(o *thing) bool {
		if exists[o] {
			return false
		}
		f.version++
		was := f.shown[o]
		text := strings.Replace(string(was.text), versionMember(o.version), versionMember(f.version), 1)
		f.history = append(f.history, change{f.version, o.plural, was.labels, nil, []byte(text)})
		delete(f.shown, o)
		return true
	})
	for _, o := range f.things {
		was, known := f.shown[o]
		if known && string(was.text) == string(encode(f.show(o))) {
			continue
		}
		f.version++
		o.version = f.version
		now := shown{map[string]string{}, encode(f.show(o))}
		maps.Copy(now.labels, o.labels)
		f.history = append(f.history, change{f.version, o.plural, was.labels, now.labels, now.text})
		if f.shown[o] = now; !known {
			f.shownOrder = append(f.shownOrder, o)
		}
	}
}

func versionMember(version int) string { return `"resourceVersion":"` + strconv.Itoa(version) + `"` }

// kindFor is the type of the event that a watch with a selector gets; "" = none. What begins or stops to match is
// added or deleted.
func (c change) kindFor(selector string) string {
	was := c.before != nil && selected(&thing{labels: c.before}, selector)
	is := c.after != nil && selected(&thing{labels: c.after}, selector)
	switch {
	case is && was:
		return "MODIFIED"
	case is:
		return "ADDED"
	case was:
		return "DELETED"
	}
	return ""
}

// serveWatch sends the changes of a kind after a version, and bookmarks between them. The lock is held; it is not
// while anything is sent.
func (f *Fake) serveWatch(plural string, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var there []string
	from, err := strconv.Atoi(cmp.Or(q.Get("resourceVersion"), strconv.Itoa(f.version)))
	if !q.Has("resourceVersion") { // "get state and start at most recent": what is there comes as added
		for _, o := range f.things {
			if o.plural == plural && selected(o, q.Get("labelSelector")) {
				there = append(there, `{"type":"ADDED","object":`+string(encode(f.show(o)))+"}\n")
			}
		}
	}
	if err != nil || from == 0 || from > f.version || q.Has("limit") || q.Has("continue") || q.Get("allowWatchBookmarks") != "true" {
		f.t.Errorf("a watch that is not from the version of a list: %s", r.URL)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	s := &watching{f: f, w: w, plural: plural, selector: q.Get("labelSelector"), sent: from, raw: len(f.raw), bookmark: f.o.Now().Add(bookmarkEvery)}
	if from < f.compacted {
		s.send(fmt.Sprintf(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: %d (%d)","reason":"Expired","code":410}}`+"\n", from, f.compacted))
		return
	}
	defer f.wakeWatch(r)()
	f.watches++
	defer func() { f.watches-- }()
	for _, text := range there {
		s.send(text)
	}
	for cuts := f.cuts; !f.Over(r); {
		s.sendNew()
		switch {
		case cuts < f.cuts && f.abort:
			panic(http.ErrAbortHandler)
		case cuts < f.cuts:
			return
		case !f.Over(r) && s.isCurrent():
			f.change.Wait()
		}
	}
}

// watching is one watch that is open.
type watching struct {
	f                *Fake
	w                http.ResponseWriter
	plural, selector string
	sent             int // the version up to which everything was sent
	raw              int // how much of what was injected was sent
	bookmark         time.Time
}

func (s *watching) send(text string) {
	s.f.mu.Unlock()
	defer s.f.mu.Lock()
	_, _ = s.w.Write([]byte(text)) // a client that has left ends its request
	_ = http.NewResponseController(s.w).Flush()
}

// sendNew sends what is new since the last call.
func (s *watching) sendNew() {
	f := s.f
	f.record()
	for _, c := range f.history {
		if c.version <= s.sent {
			continue
		}
		s.sent = c.version
		if kind := c.kindFor(s.selector); c.plural == s.plural && kind != "" && !f.o.SilentWatches {
			s.send(`{"type":"` + kind + `","object":` + string(c.object) + "}\n")
		}
	}
	for ; s.raw < len(f.raw); s.raw++ {
		s.send(f.raw[s.raw])
	}
	if now := f.o.Now(); !now.Before(s.bookmark) && !f.o.SilentWatches {
		s.bookmark = now.Add(bookmarkEvery)
		s.send(`{"type":"BOOKMARK","object":{"kind":"` + s.plural + `","apiVersion":"v1","metadata":{` + versionMember(f.version) + `,"creationTimestamp":null}}}` + "\n")
	}
}

// isCurrent says that there is nothing to send.
func (s *watching) isCurrent() bool {
	f := s.f
	return !f.dirty && s.raw == len(f.raw) && (len(f.history) == 0 || f.history[len(f.history)-1].version <= s.sent)
}

// wakeWatch wakes a watch when it is over, and for bookmarks, until stop is called.
func (f *Fake) wakeWatch(r *http.Request) (stop func()) {
	left, ticker := make(chan struct{}), time.NewTicker(bookmarkEvery)
	wake := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.change.Broadcast()
	}
	go func() {
		defer ticker.Stop()
		defer wake()
		for {
			select {
			case <-ticker.C:
				wake()
			case <-r.Context().Done():
				return
			case <-f.Ended():
				return
			case <-left:
				return
			}
		}
	}()
	return func() { close(left) }
}

// Compact makes every version until now too old for a watch.
func (f *Fake) Compact() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record()
	f.version++
	f.compacted = f.version
}

// CutWatches ends the watches that are open: as a server that restarts, or by their connections.
func (f *Fake) CutWatches(connections bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts++
	f.abort = connections
	f.change.Broadcast()
}

// Inject sends a text to the watches that are open.
func (f *Fake) Inject(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.raw = append(f.raw, text)
	f.change.Broadcast()
}

// Watches is how many watches are open.
func (f *Fake) Watches() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watches
}

// Update changes an object and its pods as their controllers do: Labels, Suspended and Conditions, and of the pods
// Phase, Reason, Waiting, Code and OOM.
func (f *Fake) Update(id string, s Seed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.findID(id)
	o.labels, o.suspended, o.conditions = s.Labels, s.Suspended, s.Conditions
	f.touch(o)
	for _, p := range f.podsOf(o) {
		p.phase, p.reason, p.waiting, p.code, p.oom = s.Phase, s.Reason, s.Waiting, s.Code, s.OOM
		if p.done = s.Phase == "Succeeded" || s.Phase == "Failed"; p.done {
			p.finished = f.o.Now()
		}
		f.touch(p)
	}
}

// Expire ends an object for good, as a controller of its namespace does.
func (f *Fake) Expire(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.findID(id)
	f.drop(o, f.podsOf(o))
}
