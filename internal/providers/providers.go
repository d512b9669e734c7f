// Package providers is the contract between sbx and whatever runs sandboxes:
// four verbs that everyone has, and abilities that some have.
//
// An ability is one small interface, found with As. A missing one is
// fault.KindUnsupported and never an empty result. No wire format, no policy
// (deadlines, breakers, verification) and no output enters this room: deadlines
// and verification live in fleet, retries of a single request in the client.
package providers

import (
	"context"
	"errors"
	"iter"
	"time"

	"sbx/internal/sandbox"
)

// Named is a configured profile: a provider, or a source beside one.
type Named interface {
	// Name is the profile's name.
	Name() string
	// Type is the kind behind the profile: "local", "e2b".
	Type() string
}

// Provider is what every provider can do.
//
// Every method returns when ctx ends. Reading never changes a sandbox's life.
type Provider interface {
	Named
	// List streams the sandboxes that match q. A listing that is failed,
	// partial, looping or capped yields an error; it never just ends. Items
	// that were read before the error stay valid.
	List(ctx context.Context, q Query) iter.Seq2[sandbox.Sandbox, error]
	// Get reads one by its exact id (see IDSpeller, NameReader): fault.KindNotFound, or fault.KindGone
	// where the provider proves that it existed; an error that is
	// ErrUnreadable where it is there and nothing can be said about it.
	Get(ctx context.Context, id string) (sandbox.Sandbox, error)
	// Terminate asks for the end, once. Returning nil means accepted, not
	// done. Ending what has ended is fault.KindGone with evidence of its
	// existence, fault.KindNotFound without.
	Terminate(ctx context.Context, id string, o TerminateOptions) error
}

// FailedEnder is a provider at which a failed sandbox stays in the list, and in the
// limits, until it is deleted, and keeps nothing that a delete would destroy. Ending a
// failed one there is a delete.
type FailedEnder interface {
	EndsFailed() bool
}

// ErrUnreadable says that the sandbox is there, but that what is kept of it cannot
// be read, so that only Terminate with Delete goes further.
var ErrUnreadable = errors.New("what is kept of it cannot be read")

// Query narrows a listing. Providers that can narrow at the source do; what
// comes back is filtered again above, so a provider may return more.
type Query struct {
	All    bool // also what ended long ago, where the provider keeps it
	States []sandbox.State
	Labels map[string]string
	// Limit is how many rows the caller is likely to take; 0 = all. Nothing is read
	// ahead then, since the caller stops.
	Limit int
}

// TerminateOptions say how to end a sandbox.
type TerminateOptions struct {
	Delete bool          // also destroy what the provider would keep
	Grace  time.Duration // how long a program that can hear TERM may take
	// Patient grants the whole Grace. Without it a program loses the rest of
	// its time once it shows no reaction to TERM.
	Patient bool
	By      string // who asked, for the record
	// Seen is what Get showed just before, by the same caller. A provider that
	// would look for itself before it asks may go by it instead. Nil = it looks.
	Seen *sandbox.Sandbox
}

// LogQuery narrows a read of logs.
type LogQuery struct {
	Since time.Time // zero = from the start
	Tail  int       // the last n lines; 0 = all
	// Follow goes on until the program that create started has ended and what it
	// wrote was given, or ctx ends; where create started none, until the sandbox
	// ends. Both are a plain end. Processes that the program left behind may write
	// on; that is for another read.
	Follow bool
}

// LogReader reads a sandbox's output.
type LogReader interface {
	Logs(ctx context.Context, id string, q LogQuery) iter.Seq2[sandbox.LogLine, error]
	// CapturesOutput says whether Logs holds what every program of this sandbox
	// writes. Where it does not, an old or empty log is no silence: a program may
	// print each second and never appear in it.
	CapturesOutput(s sandbox.Sandbox) bool
}

// LogKeeper is a provider whose logs outlive their sandboxes.
type LogKeeper interface {
	KeepsLogs() bool
}

// UsageReader reads one sample of a sandbox's use of resources.
type UsageReader interface {
	Usage(ctx context.Context, id string) (sandbox.Usage, error)
}

// UsageHistoryReader reads the samples that a provider keeps, oldest first, so that
// one look knows what a sandbox did for minutes.
type UsageHistoryReader interface {
	UsageHistory(ctx context.Context, id string, since time.Time) ([]sandbox.Usage, error)
}

// ProcessLister lists the programs that run in a sandbox for other clients than the
// create of sbx: what they write reaches their client, and is in no log. It need not
// see what those started in turn: an empty list proves nothing.
type ProcessLister interface {
	Processes(ctx context.Context, id string) ([]Process, error)
}

// Process is one program that runs in a sandbox.
type Process struct {
	PID  int64 // 0 = not told
	Args []string
}

// StatsReader gives a provider's own counters. Where it is missing, the fleet
// counts the listing and leaves the lifetime totals unknown.
type StatsReader interface {
	Stats(ctx context.Context) (Stats, error)
}

// Stats are a provider's counters; nil = not reported.
type Stats struct {
	Active         *int64
	Provisioning   *int64
	Terminating    *int64
	TotalCreated   *int64
	TotalDestroyed *int64
	TimedOut       *int64 // of TotalDestroyed, how many ended by a time limit
}

// Launcher starts sandboxes. A create is never retried blindly: an error that
// leaves the outcome open says so.
type Launcher interface {
	Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error)
}

// Admitter says whether a sandbox may start here now, where that hangs on more than
// an account's limits.
type Admitter interface {
	// Admit is nil where one of this size, in bytes, may start; 0 = of the profile's
	// own default size. fault.KindRefused, with the reason in a few words: not now.
	// What cannot be known refuses nothing. A yes reserves nothing: two that ask
	// at once may both hear it.
	Admit(ctx context.Context, memoryBytes int64) error
}

// Vetter says before anything is made what could never start, where that can be known.
type Vetter interface {
	// Vet is fault.KindUsage or fault.KindUnsupported for a spec that Create would refuse
	// at any time.
	Vet(spec sandbox.Spec) error
}

// Commander runs a command inside a running sandbox.
type Commander interface {
	// Exec returns how the command ended. An error means that it could not be
	// run or that its end was not seen.
	Exec(ctx context.Context, id string, c Command) (sandbox.Exit, error)
}

// Prober asks whether a sandbox answers, without changing its life.
type Prober interface {
	Probe(ctx context.Context, id string) (Health, error)
}

// Health is the answer of a probe.
type Health struct {
	Verdict   sandbox.Verdict // of "it answers"
	Condition Condition       // what may be done with it next; "" = ConditionUnknown
	Evidence  []sandbox.Evidence
}

// Condition sorts health by what the operator, or `resume`, does next.
type Condition string

// The closed list of conditions. One is never concluded from a failed look:
// what cannot be asked is unknown.
const (
	ConditionHealthy   Condition = "healthy"   // it answers
	ConditionResumable Condition = "resumable" // paused or stopped with its state kept
	ConditionRecreate  Condition = "recreate"  // gone, or its state is: make a new one, reinstall nothing
	ConditionWait      Condition = "wait"      // between two states: look again
	ConditionBroken    Condition = "broken"    // listed as running, and what answers inside is dead
	ConditionUnknown   Condition = "unknown"
)

// EventReader reads the provider's record of a sandbox's life, oldest first.
type EventReader interface {
	Events(ctx context.Context, id string) ([]sandbox.Event, error)
}

// Sweeper removes what a dead control process left behind. It is the one
// exception to "reading changes nothing", and for `local` only.
type Sweeper interface {
	Sweep(ctx context.Context) (Swept, error)
}

// Swept counts what a sweep found.
type Swept struct {
	Refs []sandbox.Ref // sandboxes whose record was brought to its end
}

// Checker finds what is wrong with the profile itself, for doctor.
type Checker interface {
	Check(ctx context.Context) []Check
}

// Check is one finding of doctor.
type Check struct {
	Check   string
	Verdict sandbox.Verdict // True = in order
	Message string
	Hint    string
	Info    bool // good to know, but nothing to repair: it does not count as found
}

// As finds an ability of a provider or a source.
func As[T any](p Named) (T, bool) {
	a, ok := p.(T)
	return a, ok
}
