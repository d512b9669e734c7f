// Package fake is a provider in memory: sandboxes that start, write, use memory, end and disappear by
// the clock, with faults and lies on demand.
//
// State is computed from timestamps when it is read, so nothing runs between calls and no goroutine
// outlives a call. All waiting is on timers and channels, so the fake works in a testing/synctest
// bubble. No network, file or process enters this package.
package fake

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Options shape a fake. The zero value is a fast, correct provider that keeps the records of ended
// sandboxes.
type Options struct {
	Name         string           // the profile; "" = "fake"
	Type         string           // the kind of provider; "" = "fake"
	Now          func() time.Time // nil = time.Now
	PageSize     int              // sandboxes per page of a listing; 0 = 100
	Latency      time.Duration    // how long each request takes
	ProvisionFor time.Duration    // from create to running
	EndFor       time.Duration    // from terminate to ended; Forever = never
	After        After            // what reads find of an ended sandbox
	Flap         time.Duration    // how long every second listing still shows an ended sandbox
	ListLag      time.Duration    // from create until listings show a sandbox
	Skew         time.Duration    // how far its clock is ahead; 0 = not known
	LongestLife  time.Duration    // from now, that an extension gives; 0 = any
	EndsUnlisted bool             // a listing does not say when one has ended; its record does
	FailedStays  bool             // a failed sandbox stays until it is deleted (providers.FailedEnder)
	PartialLogs  bool             // the log does not have the output of programs
	Undated      bool             // its lines carry no time, but the log when it was written
	Checks       []providers.Check
	Quotas       []providers.Quota // nil = one with the number of sandboxes
	// Proof answers VerifyEnd; nil = by the state of the sandbox.
	Proof func(id string, q providers.EndQuery) (providers.Proof, error)
	// Program replaces the program of a new sandbox, and Command that of an exec; nil or false =
	// the command itself, see Exec.
	Program func(spec sandbox.Spec) (Script, bool)
	Command func(id string, c providers.Command) (Script, bool)
}

// Forever as an EndFor keeps a sandbox in terminating.
const Forever time.Duration = -1

// After is what a read finds of an ended sandbox.
type After int

// What reads find of an ended sandbox. A deleted one is never kept.
const (
	AfterKept    After = iota // its record, as terminated or failed
	AfterGone                 // fault.KindGone: proof that it existed
	AfterMissing              // fault.KindNotFound: nothing
)

// Provider is the fake. It has every ability; Bare and Only hide some.
type Provider struct {
	o Options

	mu           sync.Mutex
	boxes        map[string]*box
	order        []string
	changed      chan struct{} // closed and replaced at every change
	faults       []*Fault
	lies         sync.Map      // of Lie
	released     chan struct{} // leaked goroutines wait for it
	calls        []Call
	ran          []Ran
	inFlight     int
	peak         int
	listings     int
	liveListings int // with Query.Live
	made         uint32
}

// New makes a fake without sandboxes.
func New(o Options) *Provider {
	o.Name, o.Type = cmp.Or(o.Name, "fake"), cmp.Or(o.Type, "fake")
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.PageSize <= 0 {
		o.PageSize = 100
	}
	return &Provider{
		o:        o,
		boxes:    map[string]*box{},
		changed:  make(chan struct{}),
		released: make(chan struct{}),
	}
}

// Name is the profile's name.
func (p *Provider) Name() string { return p.o.Name }

// Type is the kind of provider.
func (p *Provider) Type() string { return p.o.Type }

// EndsFailed is Options.FailedStays.
func (p *Provider) EndsFailed() bool { return p.o.FailedStays }

// nextID is a new id. The ids of a profile have different prefixes; the multiplier is odd, so all
// differ.
func (p *Provider) nextID() string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p.o.Name)) // a hash does not fail
	for {
		p.made++
		id := fmt.Sprintf("%08x", (p.made*2654435761)^h.Sum32())
		if _, taken := p.boxes[id]; !taken {
			return id
		}
	}
}

// notifyChange wakes all calls that wait for a change. The lock is held.
func (p *Provider) notifyChange() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Seed is a sandbox that was not created through the provider. Its timestamps are used as they are, so
// an age may be unknown or in the future.
type Seed struct {
	Sandbox  sandbox.Sandbox // ID "" = the next one; State "" = running
	Logs     []sandbox.LogLine
	Flood    int // number of generated lines
	Usage    func(now time.Time) sandbox.Usage
	EndFor   time.Duration // 0 = Options.EndFor; Forever = it stays in terminating
	Dead     bool          // it is listed as running and does not answer
	Leftover bool          // the next sweep ends it
}

// Add adds sandboxes, in the order of listings, and returns their ids.
func (p *Provider) Add(seeds ...Seed) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.notifyChange()
	ids := make([]string, 0, len(seeds))
	for _, seed := range seeds {
		b := &box{
			s: seed.Sandbox.Clone(), logs: slices.Clone(seed.Logs), flood: seed.Flood,
			usage: seed.Usage, endFor: seed.EndFor, leftover: seed.Leftover, dead: seed.Dead,
		}
		b.s.State = cmp.Or(b.s.State, sandbox.StateRunning)
		if b.s.ActivityBasis == sandbox.BasisUnknown && !p.o.PartialLogs {
			b.s.ActivityBasis = sandbox.BasisReports // as in Activity
		}
		b.endFor = cmp.Or(b.endFor, p.o.EndFor)
		ids = append(ids, p.storeBox(b))
	}
	return ids
}

// storeBox stores a box by its id. The lock is held.
func (p *Provider) storeBox(b *box) string {
	if b.s.ID == "" {
		b.s.ID = p.nextID()
	}
	b.s.Provider, b.s.ProviderType = p.o.Name, p.o.Type
	if _, known := p.boxes[b.s.ID]; !known {
		p.order = append(p.order, b.s.ID)
	}
	p.boxes[b.s.ID] = b
	return b.s.ID
}

// Change edits the record of a sandbox; false without one.
func (p *Provider) Change(id string, edit func(*sandbox.Sandbox)) bool {
	return p.editBox(id, func(b *box) { edit(&b.s) })
}

// Write adds lines to a sandbox's log; false without one.
func (p *Provider) Write(id string, lines ...sandbox.LogLine) bool {
	return p.editBox(id, func(b *box) { b.logs = append(b.logs, lines...) })
}

// Call is one request that the fake received.
type Call struct {
	Op   Op
	ID   string
	Page int // of a listing, from 1
	At   time.Time
}

// Calls are the requests so far, oldest first; with ops, only those.
func (p *Provider) Calls(ops ...Op) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.calls), func(c Call) bool {
		return len(ops) > 0 && !slices.Contains(ops, c.Op)
	})
}

// Peak is the largest number of concurrent requests about single sandboxes.
func (p *Provider) Peak() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.peak
}
