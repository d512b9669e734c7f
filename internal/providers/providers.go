// Package providers is the contract between sbx and the providers of sandboxes: the methods that every
// provider has, and abilities that some have.
//
// An ability is one small interface, found with As. A missing one is fault.KindUnsupported and never an
// empty result. No wire format, no policy (deadlines, breakers, verification) and no output enters this
// package: deadlines and verification are in fleet, retries of a single request in the client.
package providers

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"sbx/internal/fault"
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
	// List streams the sandboxes that match q. A listing that failed or is incomplete yields an
	// error; items before the error are valid.
	List(ctx context.Context, q Query) iter.Seq2[sandbox.Sandbox, error]
	// Get reads one by its exact id (see IDSpeller, NameReader): fault.KindNotFound, or
	// fault.KindGone where the provider proves that it existed; an error that is ErrUnreadable
	// where it exists and its record cannot be read.
	Get(ctx context.Context, id string) (sandbox.Sandbox, error)
	// Terminate requests the end once. Nil means accepted, not done. For an ended sandbox it is
	// fault.KindGone with evidence that it existed, fault.KindNotFound without.
	Terminate(ctx context.Context, id string, o TerminateOptions) error
}

// Rehearser says whether a request to end a sandbox would be accepted now.
type Rehearser interface {
	// Rehearse changes nothing. It is fault.KindRefused with the reason where Terminate with these options would
	// be refused for good. Any other error says nothing about the sandbox.
	Rehearse(ctx context.Context, id string, o TerminateOptions) error
}

// FailedEnder is a provider whose failed sandboxes stay in the list, and count in limits, until they
// are deleted, and keep nothing that a delete would destroy. There the end of a failed one is a delete.
type FailedEnder interface {
	EndsFailed() bool
}

// ErrUnreadable says that the sandbox exists and that its record cannot be read, so that only Terminate
// with Delete is possible.
var ErrUnreadable = errors.New("its record cannot be read")

// Query filters a listing. A provider may return more than matches; the fleet filters again.
type Query struct {
	All    bool // also what ended long ago, where the provider keeps it
	States []sandbox.State
	Labels map[string]string
	// Live says that the caller looks again and again: a provider may answer from a view that it keeps current by a
	// watch. It is for screens; nothing that decides or ends sets it.
	Live bool
}

// TerminateOptions say how to end a sandbox.
type TerminateOptions struct {
	Delete bool          // also destroy what the provider would keep
	Grace  time.Duration // from TERM to KILL
	// FullGrace grants the whole Grace, also to a program that shows no reaction to TERM.
	FullGrace bool
	By        string // who requested it, for the record
	// Seen is the result of a Get just before, which a provider may use instead of its own read.
	// Nil = it reads.
	Seen *sandbox.Sandbox
	// Insist sends the request whatever the provider's own read shows: a read said that the sandbox is
	// missing or has ended, and another source says that it runs.
	Insist bool
}

// LogQuery selects lines of a log.
type LogQuery struct {
	Since time.Time // zero = from the start
	Tail  int       // the last n lines; 0 = all
	// Follow continues until the program that create started has ended and its output was read;
	// without such a program until the sandbox ends. Both are a plain end. Later output of
	// background processes is for another read.
	Follow bool
	// Open, with Follow, also reports a line that has not ended each time that it has grown, such as a
	// prompt or a progress bar (sandbox.LogLine.OpenBytes).
	Open bool
	// Previous reads what was written before the program was started again, and Container the log of another container
	// of the sandbox than its main one: only of a LogPartReader.
	Previous  bool
	Container string
	// NoProgram says that create is known to have started no program in it, whose output would come before all else: the
	// record is not read for that.
	NoProgram bool
	// Work leaves out what is no work of the sandbox, where the log has such lines: what sbx itself
	// does in it, and queries of its clients. Tail counts the other lines.
	Work bool
}

// LogReader reads a sandbox's output.
type LogReader interface {
	Logs(ctx context.Context, id string, q LogQuery) iter.Seq2[sandbox.LogLine, error]
	// CapturesOutput says whether Logs has the output of every program of this sandbox. Where it
	// does not, an old or empty log is no proof that no program works.
	CapturesOutput(s sandbox.Sandbox) bool
}

// LogPartReader is a LogReader whose sandboxes may have several runs and containers, each with a log.
type LogPartReader interface {
	// ReadsLogParts says which of LogQuery.Previous and LogQuery.Container have a meaning.
	ReadsLogParts() (previous, container bool)
}

// LogKeeper is a provider whose logs outlive their sandboxes.
type LogKeeper interface {
	KeepsLogs() bool
}

// UsageReader reads one sample of a sandbox's use of resources.
type UsageReader interface {
	Usage(ctx context.Context, id string) (sandbox.Usage, error)
}

// UsageBatchReader reads the newest usage of many running sandboxes in one request. One that is
// missing from the result was not answered; fault.KindUnsupported where the API has no such
// request.
type UsageBatchReader interface {
	UsageOfMany(ctx context.Context, ids []string) (map[string]sandbox.Usage, error)
	UsageBatch() int // the most ids of one call
}

// UsageHistoryReader reads the samples that a provider keeps, oldest first.
type UsageHistoryReader interface {
	UsageHistory(ctx context.Context, id string, since time.Time) ([]sandbox.Usage, error)
}

// ProcessLister lists the programs that run in a sandbox for clients other than the create of sbx: their
// output is in no log. Their child processes may be missing, so an empty list is no proof.
type ProcessLister interface {
	Processes(ctx context.Context, id string) ([]Process, error)
}

// Process is one program that runs in a sandbox.
type Process struct {
	PID  int64 // 0 = not known
	Args []string
}

// TroubleReader reads what a listing does not report to be wrong with a sandbox (sandbox.Trouble).
type TroubleReader interface {
	Troubles(ctx context.Context, id string) ([]sandbox.Trouble, error)
}

// StatsReader reads a provider's own counters. Without it the fleet counts the listing, and the lifetime
// totals are unknown.
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

// Launcher starts sandboxes. A create is not repeated while its outcome is open: see OpenCreateError.
type Launcher interface {
	Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error)
}

// CopyReader is a Launcher that finds at once what a create has made a second time, as where a proxy repeats the request:
// its API refuses a second sandbox of the create while the first exists, under a name that only they have.
type CopyReader interface {
	// Copies are the other sandboxes of the create that has made id; nonce is its label sandbox.LabelNonce.
	Copies(ctx context.Context, id, nonce string) ([]sandbox.Sandbox, error)
}

// Admitter says whether a sandbox may start here now, where that depends on more than an account's
// limits.
type Admitter interface {
	// Admit is nil where a sandbox of this size, in bytes, may start; 0 = of the profile's default
	// size. fault.KindRefused with a short reason: not now. What is not known does not refuse.
	// Nothing is reserved: two concurrent calls may both be nil.
	Admit(ctx context.Context, memoryBytes int64) error
}

// Vetter checks a spec before a create.
type Vetter interface {
	// Vet is fault.KindUsage or fault.KindUnsupported for a spec that Create would always refuse.
	Vet(spec sandbox.Spec) error
}

// Commander runs a command inside a running sandbox.
type Commander interface {
	// Exec returns how the command ended. An error means that it could not be run or that its end
	// was not seen.
	Exec(ctx context.Context, id string, c Command) (sandbox.Exit, error)
}

// Prober checks whether a sandbox answers, without changing its life.
type Prober interface {
	Probe(ctx context.Context, id string) (Health, error)
}

// Health is the result of a probe.
type Health struct {
	Verdict   sandbox.Verdict // whether it answers
	Condition Condition       // what can be done next; "" = ConditionUnknown
	Evidence  []sandbox.Evidence
}

// Condition classifies health by what the operator, or `resume`, can do next.
type Condition string

// The closed list of conditions. A failed probe is ConditionUnknown.
const (
	ConditionHealthy   Condition = "healthy"   // it answers
	ConditionResumable Condition = "resumable" // paused or stopped with its state kept
	ConditionRecreate  Condition = "recreate"  // gone with its state: make a new one
	ConditionWait      Condition = "wait"      // between two states: probe again
	ConditionBroken    Condition = "broken"    // listed as running, and its daemon is dead
	ConditionUnknown   Condition = "unknown"
)

// EventReader reads the provider's record of a sandbox's life, oldest first.
type EventReader interface {
	Events(ctx context.Context, id string) ([]sandbox.Event, error)
}

// AgentEventReader reads what the agent in a sandbox reported of its work.
type AgentEventReader interface {
	// AgentEvents gives each event to add, page by page of at most the given size, the newest first and
	// each once, until all were given or add returns false. 0 = the longest page. Events that were given
	// before an error are valid.
	AgentEvents(ctx context.Context, id string, page int, add func(AgentEvent) bool) error
}

// AgentEventWaker says at once when the agent in a sandbox has reported something. It replaces no look: a report may
// come without a call of wake.
type AgentEventWaker interface {
	// WakeOnEvents calls wake, which must not block, for each report until ctx ends or the source cannot go on.
	WakeOnEvents(ctx context.Context, id string, wake func())
}

// AgentEvent is one event with its data.
type AgentEvent struct {
	ID     string // "" = its source has no ids of events
	Type   string // "agent.tool_use"
	Source string // who reported it: "agent", "worker", or a profile
	At     time.Time
	Data   []byte // a JSON value; empty = none
	Detail string // one line, of an event without data
}

// Sweeper removes leftovers of a dead control process. It is the one exception to "reading changes
// nothing", and for `local` only.
type Sweeper interface {
	Sweep(ctx context.Context) (Swept, error)
}

// Swept is the result of a sweep.
type Swept struct {
	Refs []sandbox.Ref // sandboxes whose record was ended
	Tied []sandbox.Ref // sandboxes that were ended and removed, since the process that they were tied to is gone
}

// Checker checks the profile itself, for doctor.
type Checker interface {
	Check(ctx context.Context) []Check
}

// Check is one finding of doctor.
type Check struct {
	Check   string
	Verdict sandbox.Verdict // True = in order
	Message string
	Hint    string
	Info    bool // for information: it does not count as found
}

// As finds an ability of a provider or a source.
func As[T any](p Named) (T, bool) {
	a, ok := p.(T)
	return a, ok
}

// Command is a program to run inside a sandbox.
type Command struct {
	Args    []string
	Env     []string // KEY=VALUE, added to the sandbox's own
	Workdir string   // "" = the sandbox's own
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	TTY     *Terminal // nil = plain streams
}

// Terminal asks for a terminal around the command.
type Terminal struct {
	Term string // the TERM of the caller
	Size Size
	// Resize delivers new sizes while the command runs; nil = fixed.
	Resize <-chan Size
}

// Size is a terminal's size in character cells.
type Size struct{ Columns, Rows uint16 }

// Ability is one ability of the contract.
type Ability struct {
	Name string // as `sbx providers` shows it
	Has  func(Named) bool
}

// Abilities lists the abilities for `sbx providers` and for hints of fault.KindUnsupported.
func Abilities() []Ability {
	return []Ability{
		{"logs", hasAbility[LogReader]},
		{"usage", hasAbility[UsageReader]},
		{"history", hasAbility[UsageHistoryReader]},
		{"processes", hasAbility[ProcessLister]},
		{"stats", hasAbility[StatsReader]},
		{"create", hasAbility[Launcher]},
		{"admit", hasAbility[Admitter]},
		{"exec", hasAbility[Commander]},
		{"probe", hasAbility[Prober]},
		{"events", hasAbility[EventReader]},
		{"exit", hasAbility[ExitReader]},
		{"activity", hasAbility[ActivityReader]},
		{"quota", hasAbility[QuotaReader]},
		{"records", hasAbility[Recorder]},
		{"verify", hasAbility[Verifier]},
		{"labels", hasAbility[LabelEditor]},
		{"extend", hasAbility[Extender]},
		{"cleanup", hasAbility[ProviderCleaner]},
		{"sweep", hasAbility[Sweeper]},
		{"doctor", hasAbility[Checker]},
	}
}

func hasAbility[T any](n Named) bool {
	_, ok := As[T](n)
	return ok
}

// WhyNot is the reason why p lacks an ability.
func WhyNot(p Named, ability string) string {
	if u, ok := p.(*Unopened); ok {
		return "it could not be opened: " + u.why.Error()
	}
	text := "a provider of type " + p.Type() + " has no " + ability
	if e, ok := As[Explainer](p); ok {
		if why := e.WhyNot(ability); why != "" {
			text += ": " + why
		}
	}
	return text
}

// Unsupported is the error for an ability that p lacks; the hint names the other providers that have
// it.
func Unsupported(p Provider, ability string, others []Provider) error {
	if u, ok := p.(*Unopened); ok {
		return u.why
	}
	err := fault.New(fault.KindUnsupported, "%s", WhyNot(p, ability)).At(p.Name(), "")
	i := slices.IndexFunc(Abilities(), func(a Ability) bool { return a.Name == ability })
	if i < 0 {
		return err
	}
	var can []string
	for _, o := range others {
		if Abilities()[i].Has(o) {
			can = append(can, o.Name())
		}
	}
	if len(can) == 0 {
		return err.WithHint("no configured provider has it")
	}
	return err.WithHint("these configured providers have it: %s", strings.Join(can, ", "))
}
