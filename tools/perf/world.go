package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// worldsWord as the only argument makes this program the server of worlds.
const worldsWord = "serve-worlds"

// The shape of the contest: what the issue names, the same for every API.
const (
	callTakes = 20 * time.Millisecond  // from a request to its answer
	endTakes  = 200 * time.Millisecond // from the answer to an end until the thing is gone
)

// world is one API with its things, for one run of one program.
type world struct {
	born time.Time // of its things
	ids  []string  // of all that ever were, sorted

	server *http.Server

	mu    sync.Mutex
	takes time.Duration        // of each call
	ends  map[string]time.Time // when each is gone; zero = nobody asked yet
	now   int                  // calls in flight
	tally tally
	first time.Time // request
}

// tally is what a world has seen of the program that ran against it.
type tally struct {
	Requests int `json:"requests"`
	Most     int `json:"most"`  // requests in flight at once
	Asked    int `json:"asked"` // things that were asked to end
	Left     int `json:"left"`  // things that were there when the tally was asked for
	// Kinds are the requests by what they ask for, where the world names it.
	Kinds map[string]calls `json:"kinds"`
	// FirstEnd is the time from the first request to the first that asked for an end, in milliseconds;
	// 0 = none did.
	FirstEnd float64 `json:"first_end"`
}

// calls are requests of one kind, and how long they took together, in milliseconds: on a busy machine
// longer than they were to.
type calls struct {
	N    int     `json:"n"`
	Took float64 `json:"took"`
}

func newWorld(n int, now time.Time) *world {
	w := &world{born: now.Add(-time.Hour), takes: callTakes, ends: map[string]time.Time{}, tally: tally{Kinds: map[string]calls{}}}
	for i := range n {
		w.ids = append(w.ids, fmt.Sprintf("i%020x", i))
		w.ends[w.ids[i]] = time.Time{}
	}
	return w
}

// serving wraps a route: it counts, and takes as long as a call takes here.
func (w *world) serving(serve http.HandlerFunc) http.HandlerFunc {
	return w.counted(func(*http.Request) string { return "" }, serve)
}

// counted is serving for a route whose requests are counted by a name.
func (w *world) counted(kind func(*http.Request) string, serve http.HandlerFunc) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		if w.tally.Requests++; w.first.IsZero() {
			w.first = time.Now()
		}
		w.now++
		w.tally.Most = max(w.tally.Most, w.now)
		w.mu.Unlock()
		began := time.Now()
		if w.takes > 0 {
			time.Sleep(w.takes)
		}
		serve(out, r)
		w.mu.Lock()
		defer w.mu.Unlock()
		c := w.tally.Kinds[kind(r)]
		w.tally.Kinds[kind(r)] = calls{c.N + 1, c.Took + since(began)}
		w.now--
	}
}

// living lists what is there, in a fixed order.
func (w *world) living() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(w.ids), func(id string) bool { return over(w.ends[id], now) })
}

func over(end, now time.Time) bool { return !end.IsZero() && !now.Before(end) }

// find says whether a thing is there, and whether it was asked to end.
func (w *world) find(id string) (there, ending bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end, known := w.ends[id]
	return known && !over(end, time.Now()), !end.IsZero()
}

// end asks a thing to end; false when it is not there.
func (w *world) end(id string) bool {
	if there, ending := w.find(id); !there || ending {
		return there
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends[id] = time.Now().Add(endTakes)
	if w.tally.Asked++; w.tally.Asked == 1 {
		w.tally.FirstEnd = since(w.first)
	}
	return true
}

func (w *world) count() tally {
	left := len(w.living())
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tally
	t.Left, t.Kinds = left, maps.Clone(t.Kinds)
	return t
}

// kinds are the APIs that a world may speak.
func kinds() map[string]func(*world) http.Handler {
	return map[string]func(*world) http.Handler{
		"monotask": monotask, "pods": pods, "containers": containers,
		"e2b":      (&e2bAPI{cpu: func(int) float64 { return 0 }, bare: true}).handler,
		"e2b-work": (&e2bAPI{cpu: atWork}).handler, "e2b-idle": (&e2bAPI{cpu: idle}).handler, "e2b-mixed": (&e2bAPI{cpu: tenthIdle}).handler,
		"e2b-busy": (&e2bAPI{cpu: busy, prints: true}).handler, "e2b-loops": (&e2bAPI{cpu: busy}).handler,
		"e2b-old": (&e2bAPI{cpu: atWork, noBulk: true}).handler, "e2b-dead": (&e2bAPI{cpu: tenthIdle, dead: threeTenths}).handler,
	}
}

// worlds makes a world at an address of its own for POST /KIND/N?takes=DURATION&age=DURATION, and ends
// it with DELETE /ADDRESS. That answers with its tally, as GET /ADDRESS does.
type worlds struct {
	mu   sync.Mutex
	open map[string]*world // by their addresses
}

func (ws *worlds) make(out http.ResponseWriter, r *http.Request) {
	var n int
	kind := kinds()[r.PathValue("kind")]
	if _, err := fmt.Sscan(r.PathValue("n"), &n); err != nil || kind == nil {
		http.Error(out, "no such world", http.StatusNotFound)
		return
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		http.Error(out, err.Error(), http.StatusInternalServerError)
		return
	}
	w := newWorld(n, time.Now())
	if takes, err := time.ParseDuration(r.URL.Query().Get("takes")); err == nil {
		w.takes = takes
	}
	if age, err := time.ParseDuration(r.URL.Query().Get("age")); err == nil {
		w.born = time.Now().Add(-age)
	}
	w.server = &http.Server{Handler: kind(w), ReadHeaderTimeout: time.Minute}
	go func() { _ = w.server.Serve(at) }() // it ends when it is closed
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.open[at.Addr().String()] = w
	fmt.Fprint(out, at.Addr().String())
}

// tell answers with the tally of a world; DELETE ends it.
func (ws *worlds) tell(out http.ResponseWriter, r *http.Request) {
	ws.mu.Lock()
	w := ws.open[r.PathValue("address")]
	if r.Method == http.MethodDelete {
		delete(ws.open, r.PathValue("address"))
	}
	ws.mu.Unlock()
	if w == nil {
		http.NotFound(out, r)
		return
	}
	t := w.count()
	if r.Method == http.MethodDelete {
		_ = w.server.Close() // requests in flight end with it
	}
	answer(out, http.StatusOK, t)
}

func worldServer() http.Handler {
	ws := &worlds{open: map[string]*world{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{kind}/{n}", ws.make)
	mux.HandleFunc("GET /{address}", ws.tell)
	mux.HandleFunc("DELETE /{address}", ws.tell)
	return mux
}

// serveWorlds answers at a loopback address, which it prints, until its input ends.
func serveWorlds() error {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + at.Addr().String())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // it ends when the parent does
		_ = at.Close()
	}()
	if err := http.Serve(at, worldServer()); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func answer(out http.ResponseWriter, status int, v any) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	_ = json.NewEncoder(out).Encode(v) // a client that has gone wants no answer
}
