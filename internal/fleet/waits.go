package fleet

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"
)

// Waits are the requests of a process to its providers that are not answered yet, for people who
// want to know what takes so long. The zero value is ready; it is safe for concurrent use.
type Waits struct {
	mu    sync.Mutex
	last  int
	calls map[int]awaitedCall
}

type awaitedCall struct {
	provider string
	since    time.Time
}

// Begin notes a request, until it is answered.
func (w *Waits) Begin(provider string) (answered func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = map[int]awaitedCall{}
	}
	w.last++
	id := w.last
	w.calls[id] = awaitedCall{provider, time.Now()}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.calls, id)
	}
}

// Awaited names the providers that have not answered, the one that has been silent longest first,
// and says since when that one has been asked.
func (w *Waits) Awaited() (names []string, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := slices.SortedFunc(maps.Values(w.calls), func(a, b awaitedCall) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.provider, b.provider))
	})
	for _, c := range calls {
		if !slices.Contains(names, c.provider) {
			names = append(names, c.provider)
		}
	}
	if len(calls) > 0 {
		since = calls[0].since
	}
	return names, since
}
