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
	FailedStays  bool             // a failed sandbox stays until it is deleted (providers.FailedEnder)
	PartialLogs  bool             // the log does not have the output of programs
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

	mu       sync.Mutex
	boxes    map[string]*box
	order    []string
	changed  chan struct{} // closed and replaced at every change
	faults   []*Fault
	lies     sync.Map      // of Lie
	released chan struct{} // leaked goroutines wait for it
	calls    []Call
	ran      []Ran
	inFlight int
	peak     int
	listings int
	made     uint32
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
