// Package daytonatest is a strict fake of Daytona's API and of the toolbox inside its sandboxes: a
// state machine in memory, whose commands are real processes of this host.
package daytonatest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// The account of the fake.
const (
	Token        = "dtn_5ec7e7fake0123456789" //nolint:gosec // no real credential
	Organization = "org-fake"
)

// Options shape a fake.
type Options struct {
	Now      func() time.Time // nil = time.Now
	PageSize int              // the most rows of a page; 0 = 200
	Shell    string           // to which the daemon pipes commands, and `sh`: dash, bash, busybox or zsh; "" = as wiretest.DefaultShell
	StartFor time.Duration    // from create to started
	EndFor   time.Duration    // from stop or delete to its effect; Forever = never
	Flap     bool             // the list shows what is deleted once more, as the search index does
	Old      bool             // the daemon has no metrics
	Rests    bool             // no sandbox uses CPU time
	NoAudit  bool             // the key has no right to read the audit log
	Loops    bool             // wrong: a cursor comes again
	Deaf     bool             // wrong: stop and delete answer 200 and do nothing
	Touches  bool             // wrong: a read postpones the end of a sandbox
	Longest  time.Duration    // the region's longest life, to which a longer one is cut; 0 = any
	KeepsEnd bool             // wrong: a new time to live is acknowledged and not kept
	Shortens bool             // wrong: a new time to live is half of what is left
	Hides    bool             // delete leaves a failed row that only includeErroredDeleted shows
	Wire     wiretest.Options
}

// Forever as EndFor keeps sandboxes in transition.
const Forever time.Duration = -1

// Fake is one organization, with the hosts of its toolboxes at one address.
type Fake struct {
	*wiretest.Server

	t       wiretest.T
	mu      sync.Mutex
	o       Options
	address string
	boxes   []*box
	made    int
	lists   int
	audit   []map[string]any
}

type box struct {
	id, name, state, desired, snapshot, reason, runner string
	labels, env                                        map[string]string
	created, changed, active, destroy                  time.Time
	autoStop, autoDelete                               float64
	cpu, memory, disk                                  float64
	machine                                            *wiretest.Machine
	dead                                               bool   // its daemon is dead
	out, err                                           string // of its entrypoint
}

// Says adds output of the entrypoint of a sandbox.
func (f *Fake) Says(id, stdout, stderr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.boxes {
		if b.id == id {
			b.out, b.err = b.out+stdout, b.err+stderr
		}
	}
}

// New makes a fake that ends with the test.
func New(t wiretest.T, o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.PageSize <= 0 {
		o.PageSize = 200
	}
	f := &Fake{Server: wiretest.New(t, o.Wire), t: t, o: o, address: "http://toolbox"}
	f.Handle(f.allRoutes()...)
	return f
}

// Listen serves on loopback and returns the address of the API with /api.
func (f *Fake) Listen() string {
	address := f.Server.Listen()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.address = address
	return address + "/api"
}

// Settings are the settings of a profile of the fake at an address.
func Settings(address string) map[string]string {
	return map[string]string{"token": Token, "url": address}
}

// Environment enables a profile of the fake at an address.
func (f *Fake) Environment(address string) map[string]string {
	return map[string]string{"DAYTONA_API_KEY": Token, "DAYTONA_API_URL": address}
}

// Change edits the options.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
}

// Seed is a sandbox that exists from the start.
type Seed struct {
	Name, Reason, Runner string
	State                string // "" = started
	Labels               map[string]string
	Age                  time.Duration
	Left                 time.Duration // until its end; 0 = an hour
	Ephemeral, Endless   bool
	Idle                 bool // no time ends it, and it stops when it is idle
}

// Add adds a sandbox and returns its id.
func (f *Fake) Add(s Seed) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.addBox(s.Name, s.Labels)
	at := f.o.Now().Add(-s.Age)
	b.created, b.active, b.changed = at, at, at
	b.state, b.desired, b.reason, b.runner = "started", "started", s.Reason, s.Runner
	if s.State != "" {
		b.state, b.desired = s.State, s.State
	}
	if s.Ephemeral {
		b.autoDelete = 0
	}
	b.destroy = f.o.Now().Add(cmp.Or(s.Left, time.Hour))
	if s.Idle {
		b.destroy = time.Time{}
	}
	if s.Endless {
		b.autoStop, b.destroy = 0, time.Time{}
	}
	return b.id
}

// addBox adds a box. The lock is held.
func (f *Fake) addBox(name string, labels map[string]string) *box {
	f.made++
	b := &box{
		id: fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(0x9e3779b9*f.made), f.made), labels: labels, snapshot: "daytona-small", runner: "runner-1",
		created: f.o.Now(), changed: f.o.Now(), active: f.o.Now(), autoStop: 15, autoDelete: -1, cpu: 1, memory: 1, disk: 3,
	}
	if b.name = name; name == "" {
		b.name = b.id
	}
	if b.labels == nil {
		b.labels = map[string]string{}
	}
	f.boxes = append(f.boxes, b)
	return b
}

// Kill kills the daemon of a sandbox, which stays `started`.
func (f *Fake) Kill(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.findBox(id).dead = true
}

// Processes are the real processes of a sandbox, for a test to kill.
func (f *Fake) Processes(id string) []*wiretest.Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b := f.findBox(id); b != nil && b.machine != nil {
		return b.machine.Guests()
	}
	return nil
}

// Runs says whether a sandbox runs on its runner, whatever the API shows: after a failed delete it
// does.
func (f *Fake) Runs(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advanceTime()
	for _, b := range f.boxes {
		if b.id == id {
			return b.state != "destroyed" && b.state != "stopped"
		}
	}
	return false
}

// Running is the number of sandboxes that run.
func (f *Fake) Running() (n int) {
	f.mu.Lock()
	boxes := slices.Clone(f.boxes)
	f.mu.Unlock()
	for _, b := range boxes {
		if f.Runs(b.id) {
			n++
		}
	}
	return n
}

// findBox finds a sandbox by id or name, in its current state. A failed one that is to be
// destroyed is hidden. The lock is held.
func (f *Fake) findBox(id string) *box {
	f.advanceTime()
	for _, b := range f.boxes {
		if (b.id == id || b.name == id) && b.state != "destroyed" && !b.isHidden() {
			return b
		}
	}
	return nil
}

func (b *box) isHidden() bool {
	return b.desired == "destroyed" && (b.state == "error" || b.state == "build_failed")
}

// advanceTime makes the changes of state that are due. The lock is held.
func (f *Fake) advanceTime() {
	now := f.o.Now()
	for _, b := range f.boxes {
		if f.o.EndFor != Forever && !now.Before(b.changed.Add(f.o.EndFor)) {
			f.reachDesiredState(b)
		}
		if b.state == "creating" && !now.Before(b.created.Add(f.o.StartFor)) {
			b.state = "started"
		}
		switch idle := time.Duration(b.autoStop) * time.Minute; {
		case b.state == "destroyed":
		case !b.destroy.IsZero() && !now.Before(b.destroy):
			f.destroyBox(b)
		case b.state == "started" && idle > 0 && !now.Before(b.active.Add(idle)):
			b.state, b.desired = "stopped", "stopped"
		}
	}
}

func (f *Fake) reachDesiredState(b *box) {
	switch {
	case b.desired == "destroyed" && f.o.Hides:
		b.state, b.reason = "error", "internal error"
	case b.desired == "destroyed" && b.state != "destroyed":
		f.destroyBox(b)
	case b.state == "stopping":
		b.state = "stopped"
		f.stopMachine(b)
	}
}

func (f *Fake) destroyBox(b *box) {
	b.state, b.desired = "destroyed", "destroyed"
	f.stopMachine(b)
}

func (f *Fake) stopMachine(b *box) {
	if b.machine != nil {
		go b.machine.Stop()
		b.machine = nil
	}
}

func writeAPIError(w http.ResponseWriter, r *http.Request, status int, format string, args ...any) {
	wiretest.JSON(w, status, map[string]any{
		"path": r.URL.Path, "timestamp": time.Now().UTC().Format(time.RFC3339), "statusCode": status, "error": http.StatusText(status), "message": fmt.Sprintf(format, args...),
	})
}

func writeNotFound(w http.ResponseWriter, r *http.Request, id string) {
	writeAPIError(w, r, http.StatusNotFound, "Sandbox with ID or name %s not found", id)
}

func (f *Fake) listRow(b *box) map[string]any {
	stamp := func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
	row := map[string]any{
		"id": b.id, "organizationId": Organization, "name": b.name, "target": "us", "user": "daytona", "public": false, "networkBlockAll": false,
		"cpu": b.cpu, "gpu": 0, "memory": b.memory, "disk": b.disk, "labels": b.labels, "state": b.state, "desiredState": b.desired,
		"snapshot": b.snapshot, "runnerId": b.runner, "autoStopInterval": b.autoStop, "autoDeleteInterval": b.autoDelete,
		"createdAt": stamp(b.created), "updatedAt": stamp(b.changed), "lastActivityAt": stamp(b.active), "toolboxProxyUrl": f.address + "/toolbox",
	}
	if !b.destroy.IsZero() {
		row["autoDestroyAt"] = stamp(b.destroy)
	}
	if b.reason != "" {
		row["errorReason"] = b.reason
	}
	return row
}

func (f *Fake) detailRow(b *box) map[string]any {
	row := f.listRow(b)
	row["env"] = b.env
	if b.env == nil {
		row["env"] = map[string]string{}
	}
	return row
}

func (b *box) isChanging() bool {
	return slices.Contains([]string{"creating", "starting", "stopping", "restoring", "pulling_snapshot", "building_snapshot"}, b.state)
}
