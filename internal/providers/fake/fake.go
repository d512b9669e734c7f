// Package fake is a provider in memory: sandboxes that come to be, write, use
// memory, end and vanish by the clock, and every fault and lie that a test
// wants of them.
//
// State is computed from timestamps when it is read, so nothing runs between
// calls and no goroutine outlives one. All waiting is on timers and channels
// of this process, so the fake lives in a testing/synctest bubble when it is
// made in one. No network, file or process enters this room.
package fake

import (
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Options shape a fake. The zero value is a fast, honest provider that keeps
// the records of what has ended.
type Options struct {
	Name         string           // the profile; "" = "fake"
	Type         string           // the kind of provider; "" = "fake"
	Now          func() time.Time // nil = time.Now
	PageSize     int              // sandboxes per page of a listing; 0 = 100
	Latency      time.Duration    // how long each request takes
	ProvisionFor time.Duration    // from create to running
	EndFor       time.Duration    // from terminate to ended; Forever = never
	After        After            // what remains of an ended sandbox
	Flap         time.Duration    // how long every second listing still shows what is gone
	ListLag      time.Duration    // how long after its creation listings do not show a sandbox yet
	Skew         time.Duration    // how far its clock is ahead; 0 = it does not tell
	FailedStays  bool             // what has failed is there until it is deleted (providers.FailedEnder)
	PartialLogs  bool             // the log does not hold what programs write
	Checks       []providers.Check
	Quotas       []providers.Quota // nil = one, of how many sandboxes there are
	// Proof answers VerifyEnd; nil = the truth.
	Proof func(id string, q providers.EndQuery) (providers.Proof, error)
	// Program gives what a new sandbox runs, and Command what an exec does; false,
	// or nil, leaves that to what the fake can run by itself (see Exec).
	Program func(spec sandbox.Spec) (Script, bool)
	Command func(id string, c providers.Command) (Script, bool)
}

// Forever as an EndFor keeps a sandbox in terminating.
const Forever time.Duration = -1

// After says what a read finds once a sandbox has ended.
type After int

// What remains of an ended sandbox. A deleted one is never kept.
const (
	AfterKept    After = iota // its record, as terminated or failed
	AfterGone                 // fault.KindGone: proof that it existed
	AfterMissing              // fault.KindNotFound: nothing
)

// Provider is the fake. It has every ability; Bare and Only hide some.
type Provider struct {
	o Options

	mu       sync.Mutex
	boxes    map[string]*box
	order    []string
	changed  chan struct{} // closed and replaced at every change
	faults   []*Fault
	lies     sync.Map      // of Lie
	released chan struct{} // what leaked goroutines wait for
	calls    []Call
	ran      []Ran
	inFlight int
	peak     int
	listings int
	made     uint32
}

// New makes a fake without sandboxes.
func New(o Options) *Provider {
	if o.Name == "" {
		o.Name = "fake"
	}
	if o.Type == "" {
		o.Type = "fake"
	}
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

// nextID spreads the ids of a profile, so that their prefixes differ; the
// multiplier is odd, so no two numbers meet.
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

// broadcast wakes everybody who waits for a change. The lock is held.
func (p *Provider) broadcast() {
	close(p.changed)
	p.changed = make(chan struct{})
}
