// Package verceltest is a strict fake of Vercel Sandbox's API: named sandboxes
// and their sessions as a state machine in memory, whose commands are real
// processes of this machine.
package verceltest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"sbx/internal/providers/wiretest"
)

// What the fake knows of an account.
const (
	Token   = "vcp_5ec7e7fake0123456789" //nolint:gosec // it opens nothing
	Team    = "team_fake"
	Project = "prj_fake"
)

// Options shape a fake.
type Options struct {
	Now      func() time.Time // nil = time.Now
	PageSize int              // rows of a page at most; 0 = 100
	StopFor  time.Duration    // from stop to stopped; Forever = never
	Loops    bool             // lie: a cursor comes again
	Wakes    bool             // lie: reading a stopped sandbox resumes it
	Deaf     bool             // lie: stop answers 200 and does nothing
	Hides    bool             // lie: what has stopped is listed as running
	Nameless bool             // a session does not tell its sandbox, as the SDK's schema has it
	Rests    bool             // the counters of its VMs are those of idle ones, not this machine's
	// Orphans is the status with which a delete is refused; the name and its sessions
	// are forgotten, and their VMs run on until their time is over. 0 = none is.
	Orphans int
	Wire    wiretest.Options
}

// Forever as StopFor keeps sessions in stopping.
const Forever time.Duration = -1

// Fake is one project.
type Fake struct {
	*wiretest.Server

	t wiretest.T

	mu    sync.Mutex
	o     Options
	boxes []*box
	made  int
}

// box is a name; its sessions are kept for as long as it is.
type box struct {
	name       string
	persistent bool
	created    time.Time
	tags, env  map[string]string
	vcpus      int
	runtime    string
	image      string
	snapshot   string // of a persistent one that has stopped
	kept       string // that snapshot's status
	sessions   []*vm

	sessionless bool
	forgotten   bool // by the API; its VM runs on
}

// vm is one session.
type vm struct {
	id, status                  string
	started, stopping, finished time.Time
	timeout                     time.Duration
	machine                     *wiretest.Machine
	commands                    []*command
}

// New makes a fake that ends with the test.
func New(t wiretest.T, o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.PageSize <= 0 {
		o.PageSize = 100
	}
	f := &Fake{Server: wiretest.New(t, o.Wire), t: t, o: o}
	f.Handle(f.routes()...)
	return f
}

// Settings are those of a profile that reaches the fake at an address.
func Settings(address string) map[string]string {
	return map[string]string{"token": Token, "team": Team, "project": Project, "url": address}
}

// Environment is what switches a profile on that reaches the fake at an address.
func (f *Fake) Environment(address string) map[string]string {
	return map[string]string{"VERCEL_TOKEN": Token, "VERCEL_TEAM_ID": Team, "VERCEL_PROJECT_ID": Project, "SBX_VERCEL_URL": address}
}

// Change edits the fake's options while it runs.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
}

// Seed is a sandbox that is there already.
type Seed struct {
	Name        string // "" = one of its own
	Persistent  bool
	Status      string        // "" = running
	Age         time.Duration // of its session
	Created     time.Duration // ago, of its name; 0 = as its session
	Tags        map[string]string
	Snapshot    string // the status of its snapshot: created, deleted, failed; "" = it has none
	Sessionless bool   // lie: its row names no session
}

// Add puts a sandbox in and returns the id of its session.
func (f *Fake) Add(s Seed) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	b := f.put(cmp.Or(s.Name, fmt.Sprintf("box-%d", f.made)), s.Persistent, s.Tags)
	v := b.current()
	v.status, v.started = cmp.Or(s.Status, "running"), f.o.Now().Add(-s.Age)
	b.created = f.o.Now().Add(-max(s.Created, s.Age))
	if v.over() {
		v.finished = f.o.Now()
	}
	if s.Snapshot != "" {
		b.snapshot, b.kept = "snap_"+b.name, s.Snapshot
	}
	b.sessionless = s.Sessionless
	return v.id
}

// put makes a name with a running session. The lock is held.
func (f *Fake) put(name string, persistent bool, tags map[string]string) *box {
	b := &box{name: name, persistent: persistent, created: f.o.Now(), tags: tags, vcpus: 2, runtime: "node24"}
	f.boxes = append(f.boxes, b)
	f.begin(b, 5*time.Minute)
	return b
}

// begin starts a session of a name. The lock is held.
func (f *Fake) begin(b *box, timeout time.Duration) {
	f.made++
	b.sessions = append(b.sessions, &vm{id: "sbx_" + strconv.FormatInt(int64(0xabcdef)*int64(f.made), 36), status: "running", started: f.o.Now(), timeout: timeout})
}

// Resume starts a new session of a name, as an operator of another tool does.
func (f *Fake) Resume(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.named(name)
	f.begin(b, 5*time.Minute)
	return b.current().id
}

// Runs says whether a session's VM runs, whatever the API says of it.
func (f *Fake) Runs(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.boxes {
		f.settle(b)
		for _, v := range b.sessions {
			if v.id == id {
				return !v.over()
			}
		}
	}
	return false
}

// Running is how many VMs run.
func (f *Fake) Running() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.boxes {
		f.settle(b)
		if !b.current().over() {
			n++
		}
	}
	return n
}

// Abort kills a session's VM under its commands.
func (f *Fake) Abort(id string) {
	f.mu.Lock()
	_, v := f.session(id)
	v.status, v.finished = "aborted", f.o.Now()
	machine := v.machine
	f.mu.Unlock()
	if machine != nil {
		machine.Stop()
	}
}

func (b *box) current() *vm { return b.sessions[len(b.sessions)-1] }

// changed is when its status changed last.
func (v *vm) changed() time.Time {
	for _, at := range []time.Time{v.finished, v.stopping} {
		if !at.IsZero() {
			return at
		}
	}
	return v.started
}

func (v *vm) over() bool { return slices.Contains([]string{"stopped", "failed", "aborted"}, v.status) }

// named finds a name; nil without one. The lock is held.
func (f *Fake) named(name string) *box {
	for _, b := range f.boxes {
		if b.name == name && !b.forgotten {
			f.settle(b)
			return b
		}
	}
	return nil
}

// session finds a session and its name. The lock is held.
func (f *Fake) session(id string) (*box, *vm) {
	for _, b := range f.boxes {
		for _, v := range b.sessions {
			if v.id == id && !b.forgotten {
				f.settle(b)
				return b, v
			}
		}
	}
	return nil, nil
}

// settle lets time pass for a name. The lock is held.
func (f *Fake) settle(b *box) {
	now := f.o.Now()
	for _, v := range b.sessions {
		switch {
		case v.status == "stopping" && f.o.StopFor != Forever && !now.Before(v.stopping.Add(f.o.StopFor)):
			f.finish(v, v.stopping.Add(f.o.StopFor))
		case v.status == "running" && !now.Before(v.started.Add(v.timeout)):
			f.finish(v, v.started.Add(v.timeout))
		}
	}
}

func (f *Fake) finish(v *vm, at time.Time) {
	v.status, v.finished = "stopped", at
	if v.machine != nil {
		go v.machine.Stop()
	}
}

// Processes gives the real processes of a session, for a test to kill.
func (f *Fake) Processes(id string) []*wiretest.Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*wiretest.Running
	if _, v := f.session(id); v != nil {
		for _, c := range v.commands {
			if !c.done() {
				all = append(all, c.run)
			}
		}
	}
	return all
}

// refuse answers as the API does.
func refuse(w http.ResponseWriter, status int, code, format string, args ...any) {
	wiretest.JSON(w, status, map[string]any{"error": map[string]string{"code": code, "message": fmt.Sprintf(format, args...)}})
}

func milliseconds(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UnixMilli()
}

// without leaves out what has no value, as the API does.
func without(fields map[string]any) map[string]any {
	for k, v := range fields {
		if v == nil {
			delete(fields, k)
		}
	}
	return fields
}

func (f *Fake) boxJSON(b *box) map[string]any {
	v := b.current()
	status := v.status
	if f.o.Hides && status == "stopped" {
		status = "running"
	}
	fields := map[string]any{
		"name": b.name, "persistent": b.persistent, "status": status, "statusUpdatedAt": v.changed().UnixMilli(), "currentSessionId": v.id,
		"vcpus": b.vcpus, "memory": 2048 * b.vcpus, "runtime": b.runtime, "timeout": v.timeout.Milliseconds(),
		"createdAt": b.created.UnixMilli(), "updatedAt": v.started.UnixMilli(), "cwd": "/vercel/sandbox",
	}
	if v.status == "running" {
		fields["expiresAt"] = v.started.Add(v.timeout).UnixMilli()
	}
	if b.tags != nil {
		fields["tags"] = b.tags
	}
	if b.snapshot != "" {
		fields["currentSnapshotId"] = b.snapshot
	}
	if b.image != "" {
		fields["image"] = b.image
	}
	if b.sessionless {
		delete(fields, "currentSessionId")
	}
	return fields
}

func (f *Fake) vmJSON(b *box, v *vm) map[string]any {
	var name any = b.name
	if f.o.Nameless {
		name = nil
	}
	return without(map[string]any{
		"id": v.id, "sourceSandboxName": name, "status": v.status, "memory": 2048 * b.vcpus, "vcpus": b.vcpus, "region": "iad1", "runtime": b.runtime,
		"timeout": v.timeout.Milliseconds(), "cwd": f.home(v), "requestedAt": v.started.UnixMilli(), "startedAt": milliseconds(v.started),
		"requestedStopAt": milliseconds(v.stopping), "stoppedAt": milliseconds(v.finished), "createdAt": v.started.UnixMilli(), "updatedAt": v.started.UnixMilli(),
	})
}

// home is the folder in which a session's commands run.
func (f *Fake) home(v *vm) string {
	if v.over() {
		return "/vercel/sandbox"
	}
	return f.machine(v).Home
}

// machine is where the commands of a session run. The lock is held.
func (f *Fake) machine(v *vm) *wiretest.Machine {
	if v.machine == nil {
		v.machine = wiretest.NewMachine(f.t)
	}
	return v.machine
}
