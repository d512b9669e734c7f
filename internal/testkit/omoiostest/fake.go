// Package omoiostest is a strict fake of those parts of OmoiOS's backend that a source reads: events,
// history, live sandboxes and tasks. A read of the messages of a sandbox, which consumes them, fails
// the test.
package omoiostest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// Token is the user's token of the fake.
const Token = "user-5ec7e7-0123456789" //nolint:gosec // no real credential

// Options shape a fake.
type Options struct {
	Now func() time.Time // nil = time.Now
	// DatabaseDown makes the list of events empty and the history an error, as in OmoiOS.
	DatabaseDown bool
	// Growing adds a heartbeat of a sandbox after each page of its events.
	Growing bool
	// Loops answers the rows of the first page on every page of events.
	Loops bool
	// Page is the longest page of a history; 0 = as requested.
	Page int
	// Socket is what the WebSocket of events does.
	Socket SocketMode
	Wire   wiretest.Options
}

// Event is one row of the table of events. Raw replaces the row.
type Event struct {
	ID, Sandbox, Type, Source string
	Data                      map[string]any
	At                        time.Time
	Raw                       any
}

// Task is one row of the table of tasks.
type Task struct {
	ID, Status, Sandbox string
	Created             time.Time
}

// Fake is one backend.
type Fake struct {
	*wiretest.Server

	t      wiretest.T
	mu     sync.Mutex
	o      Options
	events []Event       // oldest first
	added  chan struct{} // closed when events are added
	tasks  []Task
}

// New makes a fake that ends with the test.
func New(t wiretest.T, o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Fake{Server: wiretest.New(t, o.Wire), t: t, o: o, added: make(chan struct{})}
	const one = "/api/v1/sandboxes/{id}"
	f.Handle(
		wiretest.Route{Method: "GET", Path: one + "/events", Query: []string{"limit", "offset", "event_type"}, Serve: f.rejectToken(f.answerEvents)},
		wiretest.Route{Method: "GET", Path: one + "/trajectory", Query: []string{"limit", "cursor", "direction"}, Serve: f.rejectToken(f.answerTrajectory)},
		wiretest.Route{Method: "GET", Path: one + "/task", Serve: f.rejectToken(f.answerTaskOf)},
		wiretest.Route{Method: "GET", Path: one + "/messages", Changes: true, Serve: f.answerMessages},
		wiretest.Route{Method: "GET", Path: "/api/v1/sandboxes/monitoring/status", Serve: f.rejectToken(f.answerStatus)},
		wiretest.Route{Method: "GET", Path: "/api/v1/sandboxes/health", Serve: f.rejectToken(f.answerHealth)},
		wiretest.Route{Method: "GET", Path: "/api/v1/tasks", Query: []string{"status", "phase_id", "has_sandbox", "ticket_id", "limit"}, Serve: f.answerTasks},
		wiretest.Route{Method: "GET", Path: "/api/v1/events/ws/events", Query: []string{"token", "entity_types", "entity_ids", "event_types"}, Serve: f.serveSocket},
	)
	return f
}

// Add adds events. It sets missing ids, times and sources; an event without a time is a second
// younger than the one before, and the last one is now.
func (f *Fake) Add(events ...Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range events {
		if e.ID == "" {
			e.ID = fmt.Sprintf("event-%04d", len(f.events)+1)
		}
		if e.At.IsZero() {
			e.At = f.o.Now().Add(time.Duration(i-len(events)+1) * time.Second)
		}
		if e.Source == "" {
			e.Source = "agent"
		}
		f.events = append(f.events, e)
	}
	close(f.added)
	f.added = make(chan struct{})
}

// AddTask adds tasks.
func (f *Fake) AddTask(tasks ...Task) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = append(f.tasks, tasks...)
}

// Change edits the options.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
}

// rejectToken is a route without authentication, which fails the test for a request with a token.
func (f *Fake) rejectToken(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			f.t.Errorf("omoios fake: %s %s needs no token and gets one", r.Method, r.URL)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		serve(w, r)
	}
}

// answerMessages fails the test: this read removes the messages from the queue.
func (f *Fake) answerMessages(w http.ResponseWriter, r *http.Request) {
	f.t.Errorf("omoios fake: GET %s consumes the messages of a sandbox", r.URL)
	wiretest.JSON(w, http.StatusOK, []any{})
}

// eventsOfSandbox are the events of a sandbox, newest first. The lock is held.
func (f *Fake) eventsOfSandbox(id string) []Event {
	all := slices.DeleteFunc(slices.Clone(f.events), func(e Event) bool { return e.Sandbox != id })
	slices.SortStableFunc(all, func(a, b Event) int { return a.At.Compare(b.At) })
	slices.Reverse(all)
	return all
}

func (e Event) toJSON() any {
	if e.Raw != nil {
		return e.Raw
	}
	data := e.Data
	if data == nil {
		data = map[string]any{}
	}
	return map[string]any{
		"id": e.ID, "sandbox_id": e.Sandbox, "event_type": e.Type, "event_data": data, "source": e.Source,
		"created_at": e.At.UTC().Format("2006-01-02T15:04:05.999999+00:00"),
	}
}

func (f *Fake) answerEvents(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	all := f.eventsOfSandbox(id)
	limit, ok := queryNumber(r, "limit", 100, 1, 500)
	offset, fits := queryNumber(r, "offset", 0, 0, 1<<30)
	switch {
	case !ok || !fits:
		refuseRange(w)
		return
	case f.o.DatabaseDown:
		all = nil
	case f.o.Loops:
		offset = 0
	}
	rows := []any{}
	for _, e := range all[min(offset, len(all)):min(offset+limit, len(all))] {
		rows = append(rows, e.toJSON())
	}
	if f.o.Growing {
		f.events = append(f.events, Event{ID: fmt.Sprintf("grown-%04d", len(f.events)), Sandbox: id, Type: "agent.heartbeat", Source: "worker", At: f.o.Now()})
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"events": rows, "total_count": len(all), "sandbox_id": id})
}

func (f *Fake) answerTrajectory(w http.ResponseWriter, r *http.Request) {
	limit, ok := queryNumber(r, "limit", 100, 1, 1000)
	if !ok {
		refuseRange(w)
		return
	}
	if f.o.DatabaseDown {
		wiretest.JSON(w, http.StatusInternalServerError, map[string]string{"detail": "Failed to get trajectory"})
		return
	}
	if f.o.Page > 0 {
		limit = min(limit, f.o.Page)
	}
	all := f.eventsOfSandbox(r.PathValue("id"))
	beats := slices.DeleteFunc(slices.Clone(all), func(e Event) bool { return e.Type != "agent.heartbeat" })
	kept := slices.DeleteFunc(slices.Clone(all), func(e Event) bool { return e.Type == "agent.heartbeat" })
	from := 0
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		from = slices.IndexFunc(kept, func(e Event) bool { return e.ID == cursor }) + 1
	}
	shown := kept[from:min(from+limit, len(kept))]
	answer := map[string]any{
		"sandbox_id": r.PathValue("id"), "events": eventRows(shown), "heartbeat_summary": heartbeatSummary(beats),
		"total_events": len(all), "trajectory_events": len(kept), "has_more": from+limit < len(kept), "next_cursor": nil, "prev_cursor": nil,
	}
	if len(shown) > 0 && from+limit < len(kept) {
		answer["next_cursor"] = shown[len(shown)-1].ID
	}
	wiretest.JSON(w, http.StatusOK, answer)
}

func eventRows(events []Event) []any {
	list := make([]any, 0, len(events))
	for _, e := range events {
		list = append(list, e.toJSON())
	}
	return list
}

func heartbeatSummary(beats []Event) map[string]any {
	s := map[string]any{"count": len(beats), "first_heartbeat": nil, "last_heartbeat": nil}
	if len(beats) > 0 {
		s["first_heartbeat"], s["last_heartbeat"] = beats[len(beats)-1].toJSON(), beats[0].toJSON()
	}
	return s
}

// monitoredFor is how long a sandbox is listed after its last heartbeat.
const monitoredFor = 2 * time.Minute

func (f *Fake) answerStatus(w http.ResponseWriter, _ *http.Request) {
	list, seen := []any{}, map[string]bool{}
	for _, e := range slices.Backward(f.events) {
		if seen[e.Sandbox] || e.Type != "agent.heartbeat" || f.o.Now().Sub(e.At) > monitoredFor {
			continue
		}
		seen[e.Sandbox] = true
		at := e.At.UTC().Format("2006-01-02T15:04:05.999999") // without a zone, as Python's naive times
		list = append(list, map[string]any{"sandbox_id": e.Sandbox, "phase_status": nil, "activity": map[string]any{
			"sandbox_id": e.Sandbox, "last_work_at": nil, "last_heartbeat_at": at, "heartbeat_status": "alive", "has_completed": false,
			"is_alive": true, "is_idle": false, "is_stuck_running": false, "idle_duration_seconds": 0,
		}})
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"sandboxes": list, "active_count": len(list), "spec_sandbox_count": 0, "stuck_count": 0, "timestamp": f.o.Now().UTC().Format(time.RFC3339),
	})
}

// answerHealth is static and does not depend on the database.
func (f *Fake) answerHealth(w http.ResponseWriter, _ *http.Request) {
	wiretest.JSON(w, http.StatusOK, map[string]string{"status": "ok", "service": "sandbox-api", "timestamp": f.o.Now().UTC().Format(time.RFC3339)})
}

func (f *Fake) answerTasks(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	limit, ok := queryNumber(r, "limit", 100, 1, 100)
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		wiretest.JSON(w, http.StatusUnauthorized, map[string]string{"detail": "Not authenticated"})
		return
	case !ok:
		refuseRange(w)
		return
	}
	list := []any{}
	for _, t := range f.tasks {
		if t.Sandbox == "" && r.URL.Query().Get("has_sandbox") == "true" || len(list) == limit {
			continue
		}
		list = append(list, map[string]any{
			"id": t.ID, "status": t.Status, "sandbox_id": t.Sandbox, "assigned_agent_id": nil,
			"created_at": t.Created.UTC().Format(time.RFC3339Nano), "updated_at": nil, "started_at": nil, "completed_at": nil,
		})
	}
	wiretest.JSON(w, http.StatusOK, list)
}

func (f *Fake) answerTaskOf(w http.ResponseWriter, r *http.Request) {
	for _, t := range f.tasks {
		if t.Sandbox == r.PathValue("id") {
			wiretest.JSON(w, http.StatusOK, map[string]any{
				"id": t.ID, "ticket_id": "ticket-1", "phase_id": "PHASE_IMPLEMENTATION", "task_type": "implement", "priority": "HIGH",
				"status": t.Status, "sandbox_id": t.Sandbox, "assigned_agent_id": nil, "created_at": t.Created.UTC().Format(time.RFC3339Nano),
			})
			return
		}
	}
	wiretest.JSON(w, http.StatusNotFound, map[string]string{"detail": "No task found for sandbox " + r.PathValue("id")})
}

func queryNumber(r *http.Request, name string, otherwise, least, most int) (int, bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= least && n <= most
}

func refuseRange(w http.ResponseWriter) {
	wiretest.JSON(w, http.StatusUnprocessableEntity, map[string]any{"detail": []any{map[string]string{"msg": "out of range"}}})
}
