package e2btest

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/providers/wiretest"
)

// Key is the API key that the fake knows.
const Key = "e2b_5ec7e7fake0123456789"

// Options shape a fake; the zero value is a fast and honest E2B.
type Options struct {
	Now        func() time.Time // nil = time.Now
	Novita     bool             // an older API level: no order, no newer logs, no events; a quota
	Legacy     bool             // ids in two parts, metrics in MiB (Novita's older domains)
	PageSize   int              // rows of a page at most; 0 = 100
	HostFor    time.Duration    // how long a host answers after its sandbox was killed; Forever = always
	Capacity   int              // sandboxes that may run at once; 0 = any number
	NoMetrics  bool             // the metrics API is not there
	NoSamples  bool             // the metrics API has no sample yet
	Wakes      bool             // lie: reading a sandbox resumes it
	Lengthens  bool             // lie: reading a sandbox gives it another minute
	HidesLast  bool             // lie: the list leaves out the last row and says nothing
	Loops      bool             // lie: a page token comes again
	KeepsAlive bool             // lie: DELETE says 204 and does nothing
	// Orphans is what DELETE answers when its node fails: an error status, or
	// NoAnswer. The API forgets the record and the edge its entry at once, so that
	// GET is 404 and the host 502, while the VM runs on until its time is over
	// (E2B API, delete_instance.go). 0 = the node does what it is told.
	Orphans int
	// LosesEvery lets the edge lose each n-th stream out of a sandbox; 0 = none.
	LosesEvery int
	Wire       wiretest.Options
}

// NoAnswer as Orphans lets DELETE hang.
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
	edge  edge
}

// box is one sandbox. Once killed it is no longer in the API, while its host may
// answer on.
type box struct {
	id, client, template, token string
	started, ends, killed       time.Time
	paused                      bool
	metadata, env               map[string]string
	machine                     *wiretest.Machine
	procs                       map[uint32]*proc
	events                      []event
	logs                        []entry
	closed                      bool // envd does not answer any more
	orphan                      bool // killed in the records alone: its VM runs on
	figures                     Figures
	since                       time.Time // when the figures were set
}

// Figures are what the metrics of a sandbox show. They are those of its whole machine,
// which has two cores.
type Figures struct {
	CPUPercent         float64 // of both cores together
	MemoryMiB          float64 // in use when the figures are set
	MemoryMiBPerMinute float64 // by which it grows, and has grown
	MemoryTotalMiB     int64   // 0 = 512
}

// memoryAt is what is in use at a time, in bytes, which never exceeds the total.
func (b *box) memoryAt(at time.Time) int64 {
	used := b.figures.MemoryMiB + b.figures.MemoryMiBPerMinute*at.Sub(b.since).Minutes()
	return int64(min(max(used, 20), float64(b.figures.MemoryTotalMiB)) * (1 << 20))
}

type event struct {
	kind string
	at   time.Time
}

type entry struct {
	at      time.Time
	message string
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
	f.Handle(f.control()...)
	f.Handle(f.inside()...)
	return f
}

// Settings are those of a profile that reaches the fake at an address.
func Settings(address string) map[string]string {
	return map[string]string{"token": Key, "url": address, "sandbox_url": address, "domain": "e2b.app", "template": "base"}
}

// Environment is what switches a profile on that reaches the fake at an address.
func (f *Fake) Environment(address string) map[string]string {
	prefix := "E2B"
	if f.o.Novita {
		prefix = "NOVITA"
	}
	return map[string]string{prefix + "_API_KEY": Key, prefix + "_API_URL": address, prefix + "_SANDBOX_URL": address}
}

// Seed is a sandbox that is there already.
type Seed struct {
	Metadata map[string]string
	Paused   bool
	Age      time.Duration // since its start; 0 = now
	Left     time.Duration // until its end; 0 = an hour
	Logs     []string      // of envd
}

// Add puts a sandbox in and returns its id.
func (f *Fake) Add(s Seed) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.Left == 0 {
		s.Left = time.Hour
	}
	b := f.put("base", s.Metadata, f.o.Now().Add(-s.Age), f.o.Now().Add(s.Left))
	b.paused = s.Paused
	for i, message := range s.Logs {
		b.logs = append(b.logs, entry{b.started.Add(time.Duration(i) * time.Millisecond), message})
	}
	return f.idOf(b)
}

// put makes a box. The lock is held.
func (f *Fake) put(template string, metadata map[string]string, started, ends time.Time) *box {
	f.made++
	b := &box{
		id: fmt.Sprintf("i%020x", 0xab12cd34*uint64(f.made)), template: template, token: fmt.Sprintf("envd-token-%d", f.made),
		started: started, ends: ends, metadata: metadata, procs: map[uint32]*proc{},
		figures: Figures{CPUPercent: 12.5, MemoryMiB: 200, MemoryTotalMiB: 512}, since: f.o.Now(),
	}
	if f.o.Legacy {
		b.client = "6532622b"
	}
	b.events = []event{{"created", started}}
	f.boxes[b.id] = b
	return b
}

// idOf is the id that a client uses.
func (f *Fake) idOf(b *box) string {
	if b.client != "" {
		return b.id + "-" + b.client
	}
	return b.id
}

// find gives a living sandbox; nil without one. The lock is held.
func (f *Fake) find(id string) *box {
	b := f.known(id)
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

// known gives any sandbox that ever was, after its time has run out if it has.
func (f *Fake) known(id string) *box {
	short, _, _ := strings.Cut(id, "-")
	b := f.boxes[short]
	if b != nil && b.killed.IsZero() && !b.paused && !b.ends.After(f.o.Now()) {
		f.end(b, b.ends)
	}
	return b
}

// end takes a sandbox out of the API. The lock is held.
func (f *Fake) end(b *box, at time.Time) {
	b.killed = at
	b.events = append(b.events, event{"killed", at})
	if b.machine != nil && f.o.HostFor == 0 && !b.orphan {
		go b.machine.Stop()
	}
}

// living gives all that the API knows, oldest first. The lock is held.
func (f *Fake) living() []*box {
	var all []*box
	for _, id := range slices.Sorted(maps.Keys(f.boxes)) {
		if b := f.known(id); b.killed.IsZero() {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b *box) int { return cmp.Or(a.started.Compare(b.started), strings.Compare(a.id, b.id)) })
	return all
}

// hostAnswers says whether a sandbox's host still does. The lock is held.
func (f *Fake) hostAnswers(b *box) bool {
	switch {
	case b == nil || b.paused || b.orphan:
		return false
	case b.killed.IsZero(), f.o.HostFor == Forever:
		return true
	}
	return f.o.Now().Before(b.killed.Add(f.o.HostFor))
}

// VMRuns says whether a sandbox's VM runs, whatever the API and the edge say of
// it: what its node knows, and what envd answers to who reaches it directly.
func (f *Fake) VMRuns(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.known(id)
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

// Running is how many VMs run.
func (f *Fake) Running() int {
	f.mu.Lock()
	ids := slices.Collect(maps.Keys(f.boxes))
	f.mu.Unlock()
	return len(slices.DeleteFunc(ids, func(id string) bool { return !f.VMRuns(id) }))
}

// CloseEnvd makes envd of a sandbox deaf while the sandbox runs on.
func (f *Fake) CloseEnvd(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known(id).closed = true
}

// Change edits the fake's options while it runs.
func (f *Fake) Change(edit func(*Options)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(&f.o)
}

// refuse answers as the API does.
func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	wiretest.JSON(w, status, map[string]any{"code": status, "message": fmt.Sprintf(format, args...)})
}

func missing(w http.ResponseWriter, id string) {
	refuse(w, http.StatusNotFound, "Sandbox %q doesn't exist or you don't have access to it", id)
}
