package task

import (
	"context"
	"iter"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Sandboxes is what tasks need of the providers; a *fleet.Fleet has it.
type Sandboxes interface {
	SandboxAccess
	Create(ctx context.Context, profile string, spec sandbox.Spec) (sandbox.Sandbox, error)
	Get(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	// Labelled lists what a profile has with these labels: complete, or an error.
	Labelled(ctx context.Context, profile string, labels map[string]string) ([]sandbox.Sandbox, error)
	Terminate(ctx context.Context, targets []sandbox.Sandbox, o fleet.EndOptions) iter.Seq[sandbox.Ending]
}

// SandboxAccess is what can be seen and done inside a sandbox.
type SandboxAccess interface {
	Exit(ctx context.Context, ref sandbox.Ref) (*sandbox.Exit, error)
	Logs(ctx context.Context, ref sandbox.Ref, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error]
	Exec(ctx context.Context, ref sandbox.Ref, c providers.Command) (sandbox.Exit, error)
	Probe(ctx context.Context, ref sandbox.Ref) (providers.Health, error)
	Usage(ctx context.Context, ref sandbox.Ref) (sandbox.Usage, error)
}

// BundleStore is what a host keeps of work that is to be published.
type BundleStore interface {
	// Saved says that this host has the whole work of the task's last attempt, so that it
	// can be published without its sandbox.
	Saved(t Task) bool
	// Forget drops what this host keeps of a task that is over. It may be called
	// more than once, and for a task that nothing is kept of.
	Forget(t Task)
}

// Publisher makes a task's work public, and knows what became of it.
type Publisher interface {
	BundleStore
	// Prepare refuses early what could never be published, and says what the target
	// is at before. It publishes nothing; before the first attempt it may try out on
	// the target what holds a late publisher back, and leaves nothing of that there.
	Prepare(ctx context.Context, t Task) (base string, err error)
	// Collect takes out of the sandbox what shall be published; false = there is
	// nothing. Nothing is public after it.
	Collect(ctx context.Context, t Task, run Exec) (found bool, err error)
	// Publish does it. Nil Err and PublishDone, or PublishRefused when it is known
	// that nothing was and will be published; an error that leaves it open is
	// PublishBegun.
	Publish(ctx context.Context, t Task) (Publish, error)
	// Resolve finds out what became of a publication that was begun, and keeps it
	// from happening where it has not: PublishDone, PublishRefused or, where nobody
	// can tell, PublishDoubt. An error means that it cannot be asked right now.
	Resolve(ctx context.Context, t Task, by string) (Publish, error)
	// Remote says that the target itself holds back a late publisher.
	Remote(t Task) bool
}

// Exec runs a command in the task's sandbox.
type Exec func(ctx context.Context, c providers.Command) (sandbox.Exit, error)

// Breaker keeps attempts from a place that fails for everybody.
type Breaker interface {
	// Allow is fault.KindRefused while the place is left alone.
	Allow(ctx context.Context, place string) (Permit, error)
}

// Permit is a breaker's for one attempt.
type Permit struct {
	// Runs hears that a program runs there, which may go on for hours: nobody else need
	// wait for its end to know that the place works.
	Started func(ctx context.Context)
	// Done hears how the attempt ended, "" = that says nothing of the place.
	Done func(ctx context.Context, class sandbox.Class)
}

// MemoryAdmission is live memory of this machine, for sandboxes that run on it.
type MemoryAdmission interface {
	// CheckFree is nil when mb more fit, else why they do not, in a few words.
	CheckFree(ctx context.Context, profile string, mb int64) error
}

// Observer hears what goes on, for people. All methods are called by one goroutine at a
// time, but for Output.
type Observer interface {
	// Changed is called after each change that this process made or saw.
	Changed(t Task)
	// Message is one line for the operator.
	Message(text string)
	// Output is a line of the program.
	Output(line sandbox.LogLine)
}

// forgetWork drops what is kept for the publication of a task that is over.
func (o Options) forgetWork(t Task) {
	if o.Publisher != nil && t.State.Final() {
		o.Publisher.Forget(t)
	}
}

// Options are what a Runner works with.
type Options struct {
	Ledger    Ledger
	Sandboxes Sandboxes
	Publisher Publisher       // nil = nothing can be published
	Breaker   Breaker         // nil = none
	KeepList  *KeepList       // nil = nothing is kept
	Memory    MemoryAdmission // nil = not looked at
	Pool      *Pool           // nil = nothing is made ahead
	Observer  Observer        // nil = nobody listens
	Owner     Owner
	// Continue starts a process that goes on with a task to its end, and says as which
	// owner. Nil = nobody can: what a sweep may not finish is left as it is.
	Continue func(ctx context.Context, t Task) (Owner, error)
	// Notice tells the operator what is about no task of his; nil = nobody listens.
	Notice func(text string)
	// CallbackURL is where a control plane hears of tasks that have Spec.Callback: their
	// programs are told of it. "" = they are not.
	CallbackURL string
	// Alive says whether another owner's process is known to be dead (False), alive
	// (True), or on a host that nobody here can look at. Nil = Unknown.
	Alive func(Owner) sandbox.Verdict
	// Bound says that a profile's sandboxes live on the host that made them, where no
	// other can see them: that it finds none proves nothing. Nil = none do.
	HostBound func(profile string) bool
	// ReadsProveEnds says that what the reads of a profile say of an end is the state of
	// the machine itself, so that no request to end one need be kept. Nil = none do.
	ReadsProveEnds func(profile string) bool
	// Deletes says that a profile's terminate keeps what costs money, so that a
	// task's sandboxes are to be deleted. Nil = none does.
	DeleteOnEnd func(profile string) bool
	// Protected says why the operator keeps a sandbox (safety.Protection): one that a task
	// has kept stays then, although its time is over. Nil = nothing is protected.
	Protected func(sandbox.Sandbox) string
	// Roll gives the jitter, in [0,1); nil = none (0.5).
	Jitter func() float64
	// Nonce makes names that nobody else has; nil = random ones.
	Nonce func() string
	// At is called at each named point of a task's life; tests kill the process
	// there. Nil = nothing happens.
	CrashPoint func(point string)
	// Settling is for how long after its sender has given up a create without an
	// answer may still make something, and that be missing from the listing
	// (tasks.md R4); 0 where an error means that nothing is there. Nil = a minute.
	SettleTime func(profile string) time.Duration
}
