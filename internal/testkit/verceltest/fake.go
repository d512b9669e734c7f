// Package verceltest is a strict fake of Vercel Sandbox's API: named sandboxes and their sessions as
// a state machine in memory, whose commands are real processes of this host.
package verceltest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// The account of the fake.
const (
	Token   = "vcp_5ec7e7fake0123456789" //nolint:gosec // no real credential
	Team    = "team_fake"
	Project = "prj_fake"
)

// Options shape a fake.
type Options struct {
	Now      func() time.Time // nil = time.Now
	PageSize int              // the most rows of a page; 0 = 100
	Shell    string           // of the VM, as `sh`: dash, bash, busybox or zsh; "" = that of this host
	StopFor  time.Duration    // from stop to stopped; Forever = never
	Loops    bool             // wrong: a cursor comes again
	Wakes    bool             // wrong: a read of a stopped sandbox resumes it
	Deaf     bool             // wrong: stop answers 200 and does nothing
	Longest  time.Duration    // the plan's longest session; 0 = any
	KeepsEnd bool             // wrong: an extension is acknowledged and not kept
	Shortens bool             // wrong: an extension takes from the time limit what it should add
	Hides    bool             // wrong: a stopped sandbox is listed as running
	Nameless bool             // a session has no name of its sandbox, as in the SDK's schema
	Rests    bool             // the counters of the VMs are those of idle ones, not of this host
	Quick    bool             // a command has ended, and its record says so, before its stream begins
	// Orphans is the status that refuses a delete; the name and its sessions are dropped, and
	// their VMs run until their time limit. 0 = no delete is refused.
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
	forgotten   bool // dropped by the API, while its VM runs
}

type vm struct {
	id, status                  string
	started, stopping, finished time.Time
	timeout                     time.Duration
	machine                     *wiretest.Machine
	commands                    []*command
	figures                     *Figures // of its counters; nil = this host's
	since                       time.Time
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
	f.Handle(f.routeTable()...)
	return f
}

// Settings are the settings of a profile of the fake at an address.
func Settings(address string) map[string]string {
	return map[string]string{"token": Token, "team": Team, "project": Project, "url": address}
}

// Environment enables a profile of the fake at an address.
func (f *Fake) Environment(address string) map[string]string {
	return map[string]string{"VERCEL_TOKEN": Token, "VERCEL_TEAM_ID": Team, "VERCEL_PROJECT_ID": Project, "SBX_VERCEL_URL": address}
}

// Change edits the options.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
}

// Seed is a sandbox that exists from the start.
type Seed struct {
	Name        string // "" = a new one
	Persistent  bool
	Status      string        // "" = running
	Age         time.Duration // of its session
	Left        time.Duration // until its time limit; 0 = what is left of five minutes
	Created     time.Duration // ago, of its name; 0 = as its session
	Tags        map[string]string
	Snapshot    string // the status of its snapshot: created, deleted, failed; "" = it has none
	Sessionless bool   // wrong: its row has no session
}

// Add adds a sandbox and returns the id of its session.
func (f *Fake) Add(s Seed) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	b := f.addName(cmp.Or(s.Name, fmt.Sprintf("box-%d", f.made)), s.Persistent, s.Tags)
	v := b.currentSession()
	v.status, v.started = cmp.Or(s.Status, "running"), f.o.Now().Add(-s.Age)
	if s.Left > 0 {
		v.timeout = s.Age + s.Left
	}
	b.created = f.o.Now().Add(-max(s.Created, s.Age))
	if v.isOver() {
		v.finished = f.o.Now()
	}
	if s.Snapshot != "" {
		b.snapshot, b.kept = "snap_"+b.name, s.Snapshot
	}
	b.sessionless = s.Sessionless
	return v.id
}

// addName adds a name with a running session. The lock is held.
func (f *Fake) addName(name string, persistent bool, tags map[string]string) *box {
	b := &box{name: name, persistent: persistent, created: f.o.Now(), tags: tags, vcpus: 2, runtime: "node24"}
	f.boxes = append(f.boxes, b)
	f.startSession(b, 5*time.Minute)
	return b
}

// startSession starts a session of a name. The lock is held.
func (f *Fake) startSession(b *box, timeout time.Duration) {
	f.made++
	b.sessions = append(b.sessions, &vm{id: "sbx_" + strconv.FormatInt(int64(0xabcdef)*int64(f.made), 36), status: "running", started: f.o.Now(), timeout: timeout})
}

// Resume starts a new session of a name, as another tool does.
func (f *Fake) Resume(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.findName(name)
	f.startSession(b, 5*time.Minute)
	return b.currentSession().id
}

// Runs says whether a session's VM runs, whatever the API shows.
func (f *Fake) Runs(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.boxes {
		f.passTime(b)
		for _, v := range b.sessions {
			if v.id == id {
				return !v.isOver()
			}
		}
	}
	return false
}

// Figures are what the counters of a VM say.
type Figures struct {
	CPUPercent         float64 // of one core
	MemoryMiB          float64 // the working set at the time when the figures are set
	MemoryMiBPerMinute float64 // its growth since then
	LimitMiB           int64
}

// Show sets the counters of a session's VM.
func (f *Fake) Show(id string, figures Figures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, v := f.findSession(id)
	v.figures, v.since = &figures, f.o.Now()
}

// Running is the number of VMs that run.
func (f *Fake) Running() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.boxes {
		f.passTime(b)
		if !b.currentSession().isOver() {
			n++
		}
	}
	return n
}

// Abort kills a session's VM while its commands run.
func (f *Fake) Abort(id string) {
	f.mu.Lock()
	_, v := f.findSession(id)
	v.status, v.finished = "aborted", f.o.Now()
	machine := v.machine
	f.mu.Unlock()
	if machine != nil {
		machine.Stop()
	}
}

func (b *box) currentSession() *vm { return b.sessions[len(b.sessions)-1] }

func (v *vm) statusTime() time.Time {
	for _, at := range []time.Time{v.finished, v.stopping} {
		if !at.IsZero() {
			return at
		}
	}
	return v.started
}

func (v *vm) isOver() bool {
	return slices.Contains([]string{"stopped", "failed", "aborted"}, v.status)
}

// findName finds a name; nil without one. The lock is held.
func (f *Fake) findName(name string) *box {
	for _, b := range f.boxes {
		if b.name == name && !b.forgotten {
			f.passTime(b)
			return b
		}
	}
	return nil
}

// findSession finds a session and its name. The lock is held.
func (f *Fake) findSession(id string) (*box, *vm) {
	for _, b := range f.boxes {
		for _, v := range b.sessions {
			if v.id == id && !b.forgotten {
				f.passTime(b)
				return b, v
			}
		}
	}
	return nil, nil
}

// passTime makes the changes of status that are due. The lock is held.
func (f *Fake) passTime(b *box) {
	now := f.o.Now()
	for _, v := range b.sessions {
		switch {
		case v.status == "stopping" && f.o.StopFor != Forever && !now.Before(v.stopping.Add(f.o.StopFor)):
			f.stopSession(v, v.stopping.Add(f.o.StopFor))
		case v.status == "running" && !now.Before(v.started.Add(v.timeout)):
			f.stopSession(v, v.started.Add(v.timeout))
		}
	}
}

func (f *Fake) stopSession(v *vm, at time.Time) {
	v.status, v.finished = "stopped", at
	if v.machine != nil {
		go v.machine.Stop()
	}
}

// Processes are the real processes of a session, for a test to kill.
func (f *Fake) Processes(id string) []*wiretest.Running {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*wiretest.Running
	if _, v := f.findSession(id); v != nil {
		for _, c := range v.commands {
			if !c.isDone() {
				all = append(all, c.run)
			}
		}
	}
	return all
}

func refuseRequest(w http.ResponseWriter, status int, code, format string, args ...any) {
	wiretest.JSON(w, status, map[string]any{"error": map[string]string{"code": code, "message": fmt.Sprintf(format, args...)}})
}

func unixMillis(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UnixMilli()
}

// dropNil removes fields without a value, as the API does.
func dropNil(fields map[string]any) map[string]any {
	for k, v := range fields {
		if v == nil {
			delete(fields, k)
		}
	}
	return fields
}

func (f *Fake) boxJSON(b *box) map[string]any {
	v := b.currentSession()
	status := v.status
	if f.o.Hides && status == "stopped" {
		status = "running"
	}
	fields := map[string]any{
		"name": b.name, "persistent": b.persistent, "status": status, "statusUpdatedAt": v.statusTime().UnixMilli(), "currentSessionId": v.id,
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
	return dropNil(map[string]any{
		"id": v.id, "sourceSandboxName": name, "status": v.status, "memory": 2048 * b.vcpus, "vcpus": b.vcpus, "region": "iad1", "runtime": b.runtime,
		"timeout": v.timeout.Milliseconds(), "cwd": f.workdirOf(v), "requestedAt": v.started.UnixMilli(), "startedAt": unixMillis(v.started),
		"requestedStopAt": unixMillis(v.stopping), "stoppedAt": unixMillis(v.finished), "createdAt": v.started.UnixMilli(), "updatedAt": v.started.UnixMilli(),
	})
}

// workdirOf is the folder in which a session's commands run.
func (f *Fake) workdirOf(v *vm) string {
	if v.isOver() {
		return "/vercel/sandbox"
	}
	return f.machineOf(v).Home
}

// machineOf is the machine of a session's commands. The lock is held.
func (f *Fake) machineOf(v *vm) *wiretest.Machine {
	if v.machine == nil {
		v.machine = wiretest.NewMachine(f.t, f.o.Shell)
	}
	return v.machine
}
