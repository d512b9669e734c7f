// Package monotasktest is a strict fake of MonoTask's sandbox API: a state machine in memory, with
// counters.
package monotasktest

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// Token is the admin token of the fake.
const Token = "admin-5ec7e7-0123456789" //nolint:gosec // no real credential

// Options shape a fake.
type Options struct {
	Now      func() time.Time // nil = time.Now
	EndFor   time.Duration    // from DELETE to the end; Forever = never
	Kept     bool             // ended sandboxes stay, as terminated
	Guarded  bool             // every call needs the admin token
	Miscount bool             // the counters disagree
	Lists    bool             // wrong: the list shows ended sandboxes as running
	Forgets  bool             // DELETE removes a row without a sandbox
	// Orphans is the status that refuses a DELETE; the record is dropped, and the sandbox still
	// runs. 0 = no DELETE is refused.
	Orphans  int
	Deaf     bool // wrong: DELETE answers 200 and does nothing
	EndsRead bool // wrong: a read ends a sandbox
	Wire     wiretest.Options
}

// Forever as EndFor keeps sandboxes in terminating.
const Forever time.Duration = -1

// Fake is one agent worker.
type Fake struct {
	*wiretest.Server

	mu      sync.Mutex
	o       Options
	boxes   []*Box
	created int64
}

// Box is one sandbox.
type Box struct {
	ID, Status, AgentType, TaskID string
	Created                       time.Time
	Logs                          any // as JSON
	Resources                     *Resources
	asked                         time.Time
	forgotten                     bool // dropped by the API, while it runs
}

// Resources are the figures that an agent reports. Without them it reports a few operations.
type Resources struct {
	CPUPercent          float64
	MemoryMB            float64
	OperationsPerSecond float64
}

// New makes a fake that ends with the test.
func New(t wiretest.T, o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	f := &Fake{Server: wiretest.New(t, o.Wire), o: o}
	open := func(method, path string, serve http.HandlerFunc) wiretest.Route {
		return wiretest.Route{Method: method, Path: path, Changes: method != http.MethodGet, Serve: f.withLock(serve)}
	}
	f.Handle(
		open("GET", "/api/sandbox/list", f.serveList), open("GET", "/api/sandbox/stats", f.serveStats),
		open("GET", "/api/sandbox/{id}", f.withBox(func(w http.ResponseWriter, _ *http.Request, b *Box) { wiretest.JSON(w, http.StatusOK, f.boxRow(b)) })), open("GET", "/api/sandbox/{id}/logs", f.withBox(f.serveLogs)),
		open("GET", "/api/sandbox/{id}/resources", f.withBox(f.serveResources)), open("DELETE", "/api/sandbox/{id}", f.withBox(f.serveDelete)),
		open("POST", "/api/sandbox/cleanup", f.requireAdmin(f.serveCleanup)), open("POST", "/api/sandbox/cleanup/emergency", f.requireAdmin(f.serveCleanup)),
	)
	return f
}

// Environment enables a profile of the fake at an address.
func (f *Fake) Environment(address string) map[string]string {
	return map[string]string{"MONOTASK_URL": address, "MONOTASK_TOKEN": Token}
}

// Processes is nil: no process runs in these sandboxes.
func (f *Fake) Processes(string) []*wiretest.Running { return nil }

// Add adds a sandbox and returns its id.
func (f *Fake) Add(b Box) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created++
	if b.ID == "" {
		b.ID = fmt.Sprintf("sb-%06x", 0xabcd01*f.created%0xffffff)
	}
	if b.Status == "" {
		b.Status = "running"
	}
	if b.Created.IsZero() {
		b.Created = f.o.Now()
	}
	f.boxes = append(f.boxes, &b)
	return b.ID
}

// Set edits a sandbox.
func (f *Fake) Set(id string, edit func(*Box)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.boxes {
		if b.ID == id {
			edit(b)
		}
	}
}

// Runs says whether a sandbox runs, whatever the API shows.
func (f *Fake) Runs(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settleEnds()
	return slices.ContainsFunc(f.boxes, func(b *Box) bool { return b.ID == id && b.Status != "terminated" && b.Status != "failed" })
}

// End ends a sandbox from inside: nobody has called the API.
func (f *Fake) End(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.boxes {
		if b.ID == id {
			b.Status = "terminated"
		}
	}
}

// Running is the number of sandboxes that run.
func (f *Fake) Running() (n int) {
	f.mu.Lock()
	ids := make([]string, 0, len(f.boxes))
	for _, b := range f.boxes {
		ids = append(ids, b.ID)
	}
	f.mu.Unlock()
	for _, id := range ids {
		if f.Runs(id) {
			n++
		}
	}
	return n
}

// Change edits the options.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
}

func (f *Fake) withLock(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		guarded := f.o.Guarded
		f.mu.Unlock()
		cleanup := r.Method == http.MethodPost
		if r.Header.Get("Authorization") != "" && !cleanup && !guarded {
			wiretest.JSON(w, http.StatusBadRequest, map[string]string{"error": "the admin token does not belong here"})
			return
		}
		if guarded && r.Header.Get("Authorization") == "" {
			wiretest.JSON(w, http.StatusUnauthorized, map[string]string{"error": "token required"})
			return
		}
		if bearer := r.Header.Get("Authorization"); bearer != "" && bearer != "Bearer "+Token {
			wiretest.JSON(w, http.StatusUnauthorized, map[string]string{"error": "bad token"})
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.settleEnds()
		serve(w, r)
	}
}

// settleEnds ends the sandboxes whose end is due. The lock is held.
func (f *Fake) settleEnds() {
	for _, b := range f.boxes {
		if !b.asked.IsZero() && f.o.EndFor != Forever && !f.o.Now().Before(b.asked.Add(f.o.EndFor)) {
			b.Status = "terminated"
		}
	}
	if !f.o.Kept {
		f.boxes = slices.DeleteFunc(f.boxes, func(b *Box) bool { return b.Status == "terminated" && !f.o.Lists })
	}
}

func (f *Fake) withBox(serve func(http.ResponseWriter, *http.Request, *Box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, b := range f.boxes {
			if b.ID == r.PathValue("id") && !b.forgotten && (f.o.Kept || b.Status != "terminated") {
				if f.o.EndsRead && b.asked.IsZero() {
					b.asked = f.o.Now()
				}
				serve(w, r, b)
				return
			}
		}
		if r.Method == http.MethodDelete && f.dropListed(r.PathValue("id")) {
			wiretest.JSON(w, http.StatusOK, map[string]bool{"success": true})
			return
		}
		wiretest.JSON(w, http.StatusNotFound, map[string]string{"error": "sandbox not found"})
	}
}

// dropListed removes a row without a sandbox. The lock is held.
func (f *Fake) dropListed(id string) bool {
	n := len(f.boxes)
	f.boxes = slices.DeleteFunc(f.boxes, func(b *Box) bool { return f.o.Forgets && b.ID == id })
	return len(f.boxes) < n
}

func (f *Fake) requireAdmin(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			wiretest.JSON(w, http.StatusUnauthorized, map[string]string{"error": "admin token required"})
			return
		}
		serve(w, r)
	}
}

func (f *Fake) boxRow(b *Box) map[string]any {
	status := b.Status
	if f.o.Lists && status == "terminated" {
		status = "running"
	}
	return map[string]any{
		"id": b.ID, "status": status, "created_at": b.Created.UTC().Format(time.RFC3339Nano), "age_minutes": f.o.Now().Sub(b.Created).Minutes(),
		"agent_type": b.AgentType, "task_id": b.TaskID,
	}
}

func (f *Fake) serveList(w http.ResponseWriter, _ *http.Request) {
	rows := make([]any, 0, len(f.boxes))
	for _, b := range f.boxes {
		if !b.forgotten {
			rows = append(rows, f.boxRow(b))
		}
	}
	wiretest.JSON(w, http.StatusOK, rows)
}

func (f *Fake) serveLogs(w http.ResponseWriter, _ *http.Request, b *Box) {
	if b.Logs == nil {
		b.Logs = []string{}
	}
	wiretest.JSON(w, http.StatusOK, b.Logs)
}

func (f *Fake) serveResources(w http.ResponseWriter, _ *http.Request, b *Box) {
	age := f.o.Now().Sub(b.Created)
	figures, operations := Resources{CPUPercent: 12.5, MemoryMB: 120}, int64(42)
	if b.Resources != nil {
		figures, operations = *b.Resources, int64(b.Resources.OperationsPerSecond*age.Seconds())
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"cpu_percent": figures.CPUPercent, "memory_mb": figures.MemoryMB, "duration_ms": age.Milliseconds(), "operations": operations,
	})
}

func (f *Fake) serveStats(w http.ResponseWriter, _ *http.Request) {
	counts := map[string]int64{}
	for _, b := range f.boxes {
		counts[b.Status]++
	}
	here := counts["running"] + counts["provisioning"] + counts["terminating"]
	created := f.created
	if f.o.Miscount {
		created += 7
	}
	wiretest.JSON(w, http.StatusOK, map[string]int64{
		"active": counts["running"], "provisioning": counts["provisioning"], "terminating": counts["terminating"],
		"total_created": created, "total_destroyed": f.created - here,
	})
}

func (f *Fake) serveDelete(w http.ResponseWriter, _ *http.Request, b *Box) {
	if f.o.Orphans != 0 {
		b.forgotten = true
		wiretest.JSON(w, f.o.Orphans, map[string]string{"error": "the object did not answer"})
		return
	}
	if !f.o.Deaf && b.asked.IsZero() {
		b.asked, b.Status = f.o.Now(), "terminating"
		f.settleEnds()
	}
	wiretest.JSON(w, http.StatusOK, map[string]bool{"success": true})
}

func (f *Fake) serveCleanup(w http.ResponseWriter, _ *http.Request) {
	n := 0
	for _, b := range f.boxes {
		if f.o.Now().Sub(b.Created) > 10*time.Minute {
			b.asked, b.Status = f.o.Now(), "terminating"
			n++
		}
	}
	wiretest.JSON(w, http.StatusOK, map[string]int{"cleaned": n})
}
