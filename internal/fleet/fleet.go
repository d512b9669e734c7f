// Package fleet combines many providers: listing, finding, reading, launching, and the one
// place where an end is requested and verified.
//
// Only this package holds providers. It limits how long one of them may delay the others
// and how many requests are in flight to each. Wire formats, selection rules and output do
// not belong here; retries of one request belong to the provider's client.
package fleet

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// Default timeouts and limits.
const (
	DefaultTimeout = 20 * time.Second       // without progress, per provider
	DefaultSlots   = 16                     // requests in flight to one provider
	DefaultPollMin = 25 * time.Millisecond  // between the first two reads
	DefaultPollMax = 2 * time.Second        // between later reads
	DefaultSample  = 300 * time.Millisecond // long enough for a rate
)

// Member is one provider of the fleet.
type Member struct {
	Provider providers.Provider
	Timeout  time.Duration // without progress; 0 = DefaultTimeout
	Metadata sandbox.Metadata
	// MaxSandboxes is how many may run at once; 0 = no limit is configured.
	MaxSandboxes int
	// Remote says that an edge or a proxy answers for its sandboxes, not this machine's kernel.
	Remote bool
	// Sources are control planes that know more about this provider's sandboxes.
	Sources []providers.Source
}

// Options configure a fleet; zero values mean the defaults.
type Options struct {
	Now func() time.Time // nil = time.Now
	// Slots is how many requests about single sandboxes may be in flight to one provider.
	// It is per provider, so that a hanging provider does not delay the others. Listings,
	// followed logs and running commands take no slot.
	Slots int
	Poll  Poll
	// Sample is the time between the two samples of an observation; 0 = DefaultSample.
	Sample time.Duration
	// EndRequests stores unconfirmed requests to end a sandbox; nil = they are kept only by
	// EndOptions and sandbox.Ending.
	EndRequests EndRequests
	// Acknowledged says that a request of any run on record to end a sandbox was acknowledged; nil = no
	// record is read.
	Acknowledged func(ctx context.Context, ref sandbox.Ref) bool
	// KeptUntil says until when sbx itself keeps a running sandbox on purpose; zero = it
	// does not. Nil = only the sandbox's labels say it.
	KeptUntil func(sandbox.Sandbox) time.Time
	// Thresholds are the thresholds of a sandbox, as far as they say how long it is looked at; nil = the
	// defaults.
	Thresholds func(sandbox.Sandbox) triage.Thresholds
	// History reads what tasks and earlier runs have recorded; nil = nothing is recorded.
	History History
	Names   NameCache    // nil = listings are not kept
	Sink    sandbox.Sink // nil = none; it is called by one goroutine at a time
	// Absent says how a profile that is not there comes to be; nil or "" = nothing is known of it.
	Absent func(profile string) (hint string)
	// Asking is called before each request to a provider, and answered after it: Waits.Begin.
	Asking func(provider string) (answered func())
}

// Poll is the interval between repeated reads: from Min, doubling, to Max.
type Poll struct {
	Min time.Duration
	Max time.Duration
}

// Fleet is a set of providers. It is safe for concurrent use.
type Fleet struct {
	members  []*member
	o        Options
	sinkLock *sync.Mutex
}

// New makes a fleet. The names of its members must differ.
func New(members []Member, o Options) *Fleet {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Slots = cmp.Or(max(o.Slots, 0), DefaultSlots)
	o.Sample = cmp.Or(max(o.Sample, 0), DefaultSample)
	if o.KeptUntil == nil {
		o.KeptUntil = func(s sandbox.Sandbox) time.Time { return sandbox.KeptAtMost(s.Labels) }
	}
	if o.Asking == nil {
		o.Asking = func(string) func() { return func() {} }
	}
	if o.Thresholds == nil {
		o.Thresholds = func(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() }
	}
	if o.History == nil {
		o.History = noHistory{}
	}
	o.Poll.Min = cmp.Or(max(o.Poll.Min, 0), DefaultPollMin)
	if o.Poll.Max < o.Poll.Min {
		o.Poll.Max = max(DefaultPollMax, o.Poll.Min)
	}
	f := &Fleet{o: o, sinkLock: &sync.Mutex{}}
	for _, m := range members {
		m.Timeout = cmp.Or(max(m.Timeout, 0), DefaultTimeout)
		one := &member{
			Member: m, slots: make(chan struct{}, o.Slots), waiting: make(chan struct{}, 2*o.Slots*looksPerSlot), breaker: policy.NewBreaker(m.Provider.Name()),
			keptUntil: o.KeptUntil, names: o.Names, capacity: &capacity{
				counting: make(chan struct{}, 1), made: map[string]time.Time{},
			}, listing: &lastListing{}, second: newSecondListing(), history: o.History, quota: &quotaUsed{}, answers: &answers{}, now: o.Now, asking: o.Asking,
		}
		for _, s := range m.Sources {
			one.attached = append(one.attached, source{s, policy.NewBreaker(s.Name())})
		}
		f.members = append(f.members, one)
	}
	return f
}

// Names returns the profiles, in the order of the configuration.
func (f *Fleet) Names() []string {
	names := make([]string, 0, len(f.members))
	for _, m := range f.members {
		names = append(names, m.Provider.Name())
	}
	return names
}

// Narrow returns the fleet of the named profiles; no names = all. It shares the slots of
// this fleet. An unknown name is fault.KindUsage.
func (f *Fleet) Narrow(names []string) (*Fleet, error) {
	if len(names) == 0 {
		return f, nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		if _, err := f.findMember(name); err != nil {
			return nil, err
		}
		wanted[name] = true
	}
	var members []*member
	for _, m := range f.members {
		if wanted[m.Provider.Name()] {
			members = append(members, m)
		}
	}
	return f.withMembers(members), nil
}

func (f *Fleet) withMembers(members []*member) *Fleet {
	return &Fleet{members: members, o: f.o, sinkLock: f.sinkLock}
}

// findMember finds a profile; an unknown one is fault.KindUsage.
func (f *Fleet) findMember(name string) (*member, error) {
	for _, m := range f.members {
		if m.Provider.Name() == name {
			return m, nil
		}
	}
	hint := ""
	if i := slices.IndexFunc(f.members, func(m *member) bool { return strings.EqualFold(m.Provider.Name(), name) }); i >= 0 {
		hint = "did you mean " + f.members[i].Provider.Name() + "? Capitals count in the name of a profile"
	} else if f.o.Absent != nil {
		hint = f.o.Absent(name)
	}
	return nil, fault.Usage("no provider is named %q", name).WithHint("%s", cmp.Or(hint, fault.Meant(name, f.Names())))
}

// recordEvent passes an event to the Sink, if there is one.
func (f *Fleet) recordEvent(ref sandbox.Ref, event, detail string) {
	if f.o.Sink == nil {
		return
	}
	f.sinkLock.Lock()
	defer f.sinkLock.Unlock()
	f.o.Sink.Note(sandbox.Event{At: f.o.Now(), Event: event, Detail: detail}, ref)
}
