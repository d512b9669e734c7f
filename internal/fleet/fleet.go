// Package fleet is many providers as one: listing, finding, reading, launching
// and the one place where an end is asked for and verified.
//
// It alone holds providers. It bounds how long one of them may keep the others
// waiting and how many requests are in flight to each. No wire format, no
// selection rule and no output enters this room; retries of one request belong
// to the provider's client.
package fleet

import (
	"context"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Defaults of DESIGN section 3, Timers, and section 11.
const (
	DefaultTimeout = 20 * time.Second      // of no progress, per provider
	DefaultSlots   = 16                    // requests in flight to one provider
	DefaultPollMin = 25 * time.Millisecond // between the first two looks
	DefaultPollMax = 2 * time.Second       // between later ones
	// DefaultSample is enough for a rate, and short enough to wait for.
	DefaultSample = 300 * time.Millisecond
)

// Member is one provider of the fleet.
type Member struct {
	Provider providers.Provider
	Timeout  time.Duration // of no progress; 0 = DefaultTimeout
	Metadata sandbox.Metadata
	// MaxSandboxes is how many may run at once; 0 = the configuration says nothing.
	MaxSandboxes int
	// Sources are control planes that know more of this provider's sandboxes.
	Sources []providers.Source
}

// Options shape a fleet; zero values mean the defaults.
type Options struct {
	Now func() time.Time // nil = time.Now
	// Slots is how many requests about single sandboxes may be in flight to
	// one provider. It is per provider, so that a hung one costs the others
	// nothing. Listings, followed logs and running commands take no slot.
	Slots int
	Poll  Poll
	// Sample is the time between the two samples of a look; 0 = DefaultSample.
	Sample time.Duration
	// EndRequests keeps requests to end that nobody has confirmed; nil = nothing does,
	// beyond what a caller gives and takes by EndOptions and sandbox.Ending.
	EndRequests EndRequests
	// KeptUntil says until when sbx itself keeps a running sandbox on purpose; zero = it
	// does not. Nil = only the sandbox's labels say it.
	KeptUntil func(sandbox.Sandbox) time.Time
	// Journal opens the journal of one call of Terminate; nil = nothing is written down.
	Journal func(ctx context.Context, targets []sandbox.Sandbox, o EndOptions) EndJournal
	// History tells what tasks and earlier runs have recorded; nil = nothing is on record.
	History History
	Sink    sandbox.Sink // nil = none; it is called by one goroutine at a time
}

// Poll is the pace of looking again: from Min, doubling, to Max.
type Poll struct {
	Min time.Duration
	Max time.Duration
}

// Fleet is a set of providers. It is safe for concurrent use.
type Fleet struct {
	members []*member
	o       Options
	note    *sync.Mutex
	matcher func() *triage.Matcher // made once, when first needed
}

// New makes a fleet. The names of its members must differ.
func New(members []Member, o Options) *Fleet {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Slots <= 0 {
		o.Slots = DefaultSlots
	}
	if o.Sample <= 0 {
		o.Sample = DefaultSample
	}
	if o.KeptUntil == nil {
		o.KeptUntil = func(s sandbox.Sandbox) time.Time { return sandbox.KeptAtMost(s.Labels) }
	}
	if o.History == nil {
		o.History = noHistory{}
	}
	if o.Poll.Min <= 0 {
		o.Poll.Min = DefaultPollMin
	}
	if o.Poll.Max < o.Poll.Min {
		o.Poll.Max = max(DefaultPollMax, o.Poll.Min)
	}
	f := &Fleet{o: o, note: &sync.Mutex{}, matcher: sync.OnceValue(triage.NewMatcher)}
	for _, m := range members {
		if m.Timeout <= 0 {
			m.Timeout = DefaultTimeout
		}
		one := &member{
			Member: m, slots: make(chan struct{}, o.Slots), breaker: policy.NewBreaker(m.Provider.Name()),
			keptUntil: o.KeptUntil, capacity: newCapacity(), listing: &lastListing{}, quota: &quotaUsed{}, now: o.Now,
		}
		for _, s := range m.Sources {
			one.beside = append(one.beside, voice{s, policy.NewBreaker(s.Name())})
		}
		f.members = append(f.members, one)
	}
	return f
}

// Names gives the profiles, in the order of the configuration.
func (f *Fleet) Names() []string {
	names := make([]string, 0, len(f.members))
	for _, m := range f.members {
		names = append(names, m.Provider.Name())
	}
	return names
}

// Narrow gives the fleet of the named profiles alone; no names = all. The
// narrow fleet shares the slots of this one. An unknown name is
// fault.KindUsage.
func (f *Fleet) Narrow(names []string) (*Fleet, error) {
	if len(names) == 0 {
		return f, nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		if _, err := f.member(name); err != nil {
			return nil, err
		}
		wanted[name] = true
	}
	narrow := &Fleet{o: f.o, note: f.note, matcher: f.matcher}
	for _, m := range f.members {
		if wanted[m.Provider.Name()] {
			narrow.members = append(narrow.members, m)
		}
	}
	return narrow, nil
}

// member finds a profile; an unknown one is fault.KindUsage.
func (f *Fleet) member(name string) (*member, error) {
	for _, m := range f.members {
		if m.Provider.Name() == name {
			return m, nil
		}
	}
	return nil, fault.Usage("no provider is called %q", name).WithHint("%s", fault.Meant(name, f.Names()))
}

// tell notes an event; a fleet without a Sink is silent.
func (f *Fleet) tell(ref sandbox.Ref, event, detail string) {
	if f.o.Sink == nil {
		return
	}
	f.note.Lock()
	defer f.note.Unlock()
	f.o.Sink.Note(sandbox.Event{At: f.o.Now(), Event: event, Detail: detail}, ref)
}
