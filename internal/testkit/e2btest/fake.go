// Package e2btest is a strict fake of E2B's API and of envd inside its
// sandboxes, and of Novita's dialect of both: a state machine in memory, whose
// commands are real processes of this machine.
package e2btest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx/internal/testkit/wiretest"
)

// Key is the API key of the fake.
const Key = "e2b_5ec7e7fake0123456789"

// Options shape a fake; the zero value is a fast and correct E2B.
type Options struct {
	Now        func() time.Time // nil = time.Now
	Novita     bool             // an older API level: no order, no newer logs, no events; a quota
	Legacy     bool             // ids in two parts, metrics in MiB (Novita's older domains)
	PageSize   int              // the most rows of a page; 0 = 100
	Shell      string           // of the sandbox, as `sh`: dash, bash, busybox or zsh; "" = that of this host
	HostFor    time.Duration    // how long a host answers after its sandbox was killed; Forever = always
	Capacity   int              // sandboxes that may run at once; 0 = any number
	NoMetrics  bool             // there is no metrics API
	NoSamples  bool             // the metrics API has no sample yet
	Wakes      bool             // wrong: a read resumes a sandbox
	Lengthens  bool             // wrong: a read extends a sandbox by a minute
	HidesLast  bool             // wrong: the list omits the last row
	Loops      bool             // wrong: a page token comes again
	KeepsAlive bool             // wrong: DELETE answers 204 and does nothing
	MaxHours   int              // the plan's longest time limit; 0 = any
	KeepsEnd   bool             // wrong: a new time limit is acknowledged and not kept
	Shortens   bool             // wrong: a new time limit is half of what is left
	// Orphans is the answer of DELETE when the node fails: an error status, or NoAnswer. The API
	// drops the record and the edge its entry at once, so that GET is 404 and the host 502, while
	// the VM runs until its time limit (E2B API, delete_instance.go). 0 = the node works.
	Orphans int
	// LosesEvery makes the edge lose each n-th stream of a sandbox; 0 = none.
	LosesEvery int
	Wire       wiretest.Options
}

// NoAnswer as Orphans makes DELETE hang.
const NoAnswer = -1

// Forever as HostFor keeps a killed sandbox's host answering.
const Forever time.Duration = -1

// Fake is the API and the hosts of its sandboxes, at one address.
type Fake struct {
	*wiretest.Server

	t wiretest.T
	o Options

	mu    sync.Mutex
	boxes map[string]*box
	made  int
	pids  uint32
	calls int // of envd
	edge  lossyEdge
}

type box struct {
	id, client, template, token string
	started, ends, killed       time.Time
	paused                      bool
	metadata, env               map[string]string
	machine                     *wiretest.Machine
	procs                       map[uint32]*envdProcess
	events                      []event
	logs                        []entry
	closed                      bool // envd does not answer
	orphan                      bool // its record is gone, and its VM runs
	figures                     Figures
	since                       time.Time // when the figures were set
}

// Figures are the metrics of a sandbox: those of its machine, which has two cores.
type Figures struct {
	CPUPercent         float64 // of both cores together
	MemoryMiB          float64 // in use at the time when the figures are set
	MemoryMiBPerMinute float64 // its growth, also before that time
	MemoryTotalMiB     int64   // 0 = 512
}

// memoryAt is the memory in use at a time, in bytes, at most the total.
func (b *box) memoryAt(at time.Time) int64 {
	used := b.figures.MemoryMiB + b.figures.MemoryMiBPerMinute*at.Sub(b.since).Minutes()
	return int64(min(max(used, 20), float64(b.figures.MemoryTotalMiB)) * (1 << 20))
}

type event struct {
	kind string
	at   time.Time
}

// entry is a line of envd's log; its fields are those that are texts, numbers or booleans.
type entry struct {
	at      time.Time
	message string
	fields  map[string]string
}

// logCall appends an entry about a call of envd. The operation counts the calls of the fake.
func (f *Fake) logCall(b *box, op int, message string, fields map[string]string) {
	all := map[string]string{"logger": "process", "operation_id": strconv.Itoa(op)}
	maps.Copy(all, fields)
	b.logs = append(b.logs, entry{f.o.Now(), message, all})
}

// New makes a fake that ends with the test.
func New(t wiretest.T, o Options) *Fake {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.PageSize <= 0 {
		o.PageSize = 100
	}
	f := &Fake{Server: wiretest.New(t, o.Wire), t: t, o: o, boxes: map[string]*box{}}
	f.Handle(f.controlRoutes()...)
	f.Handle(f.envdRoutes()...)
	return f
}

// Settings are the settings of a profile of the fake at an address.
func Settings(address string) map[string]string {
	return map[string]string{"token": Key, "url": address, "sandbox_url": address, "domain": "e2b.app", "template": "base"}
}

// Environment enables a profile of the fake at an address.
func (f *Fake) Environment(address string) map[string]string {
	prefix := "E2B"
	if f.o.Novita {
		prefix = "NOVITA"
	}
	return map[string]string{prefix + "_API_KEY": Key, prefix + "_API_URL": address, prefix + "_SANDBOX_URL": address}
}

// Seed is a sandbox that exists from the start.
type Seed struct {
	Metadata map[string]string
	Paused   bool
	Age      time.Duration // since its start; 0 = now
	Left     time.Duration // until its end; 0 = an hour
	Logs     []string      // of envd
}

// Add adds a sandbox and returns its id.
func (f *Fake) Add(s Seed) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Left == 0 {
		s.Left = time.Hour
	}
	b := f.newBox("base", s.Metadata, f.o.Now().Add(-s.Age), f.o.Now().Add(s.Left))
	b.paused = s.Paused
	for i, message := range s.Logs {
		b.logs = append(b.logs, entry{b.started.Add(time.Duration(i) * time.Millisecond), message, map[string]string{"logger": "process"}})
	}
	return f.idOf(b)
}

// makeID is an id in the form of the real ones: i and 20 letters and digits that look random.
func (f *Fake) makeID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%t %d", f.o.Novita, f.made))
	return "i" + strings.ToLower(base32.HexEncoding.EncodeToString(sum[:]))[:20]
}

// newBox adds a box. The lock is held.
func (f *Fake) newBox(template string, metadata map[string]string, started, ends time.Time) *box {
	f.made++
	b := &box{
		id: f.makeID(), template: template, token: fmt.Sprintf("envd-token-%d", f.made),
		started: started, ends: ends, metadata: metadata, procs: map[uint32]*envdProcess{},
		figures: Figures{CPUPercent: 12.5, MemoryMiB: 200, MemoryTotalMiB: 512}, since: f.o.Now(),
	}
	if f.o.Legacy {
		b.client = "6532622b"
	}
	b.events = []event{{"created", started}}
	f.boxes[b.id] = b
	return b
}

func (f *Fake) idOf(b *box) string {
	if b.client != "" {
		return b.id + "-" + b.client
	}
	return b.id
}

// findLiving finds a sandbox that has not ended; nil without one. The lock is held.
func (f *Fake) findLiving(id string) *box {
	b := f.findAny(id)
	if b == nil || !b.killed.IsZero() {
		return nil
	}
	if f.o.Wakes {
		b.paused = false
	}
	if f.o.Lengthens {
		b.ends = b.ends.Add(time.Minute)
	}
	return b
}

// findAny finds a sandbox, also an ended one; it ends one whose time limit is reached.
func (f *Fake) findAny(id string) *box {
	short, _, _ := strings.Cut(id, "-")
	b := f.boxes[short]
	if b != nil && b.killed.IsZero() && !b.paused && !b.ends.After(f.o.Now()) {
		f.endBox(b, b.ends)
	}
	return b
}

// endBox removes a sandbox from the API. The lock is held.
func (f *Fake) endBox(b *box, at time.Time) {
	b.killed = at
	b.events = append(b.events, event{"killed", at})
	if b.machine != nil && f.o.HostFor == 0 && !b.orphan {
		go b.machine.Stop()
	}
}

// livingBoxes are the sandboxes of the API, oldest first. The lock is held.
func (f *Fake) livingBoxes() []*box {
	var all []*box
	for _, id := range slices.Sorted(maps.Keys(f.boxes)) {
		if b := f.findAny(id); b.killed.IsZero() {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b *box) int { return cmp.Or(a.started.Compare(b.started), strings.Compare(a.id, b.id)) })
	return all
}

// hostAnswers says whether a sandbox's host answers. The lock is held.
func (f *Fake) hostAnswers(b *box) bool {
	switch {
	case b == nil || b.paused || b.orphan:
		return false
	case b.killed.IsZero(), f.o.HostFor == Forever:
		return true
	}
	return f.o.Now().Before(b.killed.Add(f.o.HostFor))
}

// VMRuns says whether a sandbox's VM runs on its node, whatever the API and the edge show.
func (f *Fake) VMRuns(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.findAny(id)
	switch {
	case b == nil || b.paused:
		return false
	case b.orphan:
		return b.ends.After(f.o.Now())
	case b.killed.IsZero():
		return true
	}
	return f.hostAnswers(b)
}

// Running is the number of VMs that run.
func (f *Fake) Running() int {
	f.mu.Lock()
	ids := slices.Collect(maps.Keys(f.boxes))
	f.mu.Unlock()
	return len(slices.DeleteFunc(ids, func(id string) bool { return !f.VMRuns(id) }))
}

// CloseEnvd closes the port of envd while the sandbox runs.
func (f *Fake) CloseEnvd(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.findAny(id).closed = true
}

// Change edits the options.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
}

func refuseCall(w http.ResponseWriter, status int, format string, args ...any) {
	wiretest.JSON(w, status, map[string]any{"code": status, "message": fmt.Sprintf(format, args...)})
}

func refuseUnknown(w http.ResponseWriter, id string) {
	refuseCall(w, http.StatusNotFound, "Sandbox %q doesn't exist or you don't have access to it", id)
}

// Forget drops a sandbox's record and the edge's entry while its VM runs, as a DELETE that the node
// refused.
func (f *Fake) Forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.findAny(id)
	b.orphan = true
	f.endBox(b, f.o.Now())
}
