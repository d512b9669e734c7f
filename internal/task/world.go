package task

import (
	"context"
	"iter"
	"time"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// Sandboxes is what tasks need of the providers; a *fleet.Fleet has it.
type Sandboxes interface {
	SandboxAccess
	Create(ctx context.Context, profile string, spec sandbox.Spec) (sandbox.Sandbox, error)
	Get(ctx context.Context, ref sandbox.Ref) (sandbox.Sandbox, error)
	// Labelled lists the sandboxes of a profile with these labels: completely, or an error.
	Labelled(ctx context.Context, profile string, labels map[string]string) ([]sandbox.Sandbox, error)
	// Copies lists what the create of a sandbox has made beside it: completely, or an error.
	Copies(ctx context.Context, ref sandbox.Ref, nonce string) ([]sandbox.Sandbox, error)
	Terminate(ctx context.Context, targets []sandbox.Sandbox, o fleet.EndOptions) iter.Seq[sandbox.Ending]
}

// SandboxAccess reads and runs programs inside a sandbox.
type SandboxAccess interface {
	Exit(ctx context.Context, ref sandbox.Ref) (*sandbox.Exit, error)
	Logs(ctx context.Context, ref sandbox.Ref, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error]
	Exec(ctx context.Context, ref sandbox.Ref, c providers.Command) (sandbox.Exit, error)
	Probe(ctx context.Context, ref sandbox.Ref) (providers.Health, error)
	Usage(ctx context.Context, ref sandbox.Ref) (sandbox.Usage, error)
	// Vanished reports whether the sandbox does not run any more, by a read by id and by the list.
	Vanished(ctx context.Context, ref sandbox.Ref) (bool, error)
}

// BundleStore is the work that a host keeps for publication.
type BundleStore interface {
	// Saved reports whether this host has the whole work of the task's last attempt, so
	// that it can be published without its sandbox.
	Saved(t Task) bool
	// Forget drops the work of a task that is over. It may be called repeatedly, and for a
	// task without work.
	Forget(t Task)
}

// RemoteTarget is the target of a publication where it is a remote. It makes and removes
// the branch of a task with Spec.NewBranch.
type RemoteTarget interface {
	// PushesToGit reports whether the work is pushed to a git remote, which itself holds back a
	// late publisher. Else the operator's own command publishes it.
	PushesToGit(t Task) bool
	// PlanBranch returns the commit at which the branch is to be made, and refuses one that
	// exists. It changes nothing.
	PlanBranch(ctx context.Context, t Task) (commit string, err error)
	// MakeBranch makes the branch of t.Branch, once, and returns its commit. With an error,
	// madeNone reports whether it is certain that this call has made no branch.
	MakeBranch(ctx context.Context, t Task) (commit string, madeNone bool, err error)
	// RemoveBranch removes the branch if it is still at its first commit, prevents a MakeBranch
	// that has not arrived, and returns the branch's end. An error means that it may still
	// exist.
	RemoveBranch(ctx context.Context, t Task, by string) (end string, err error)
}

// Collected is whether the work of a task has anything to publish.
type Collected bool

// What Publisher.Collect finds.
const (
	NothingToPublish Collected = false
	WorkToPublish    Collected = true
)

// Publisher publishes a task's work, and finds out what became of a publication.
type Publisher interface {
	BundleStore
	RemoteTarget
	// Prepare refuses work that could never be published, and returns the target's commit
	// before the push. It publishes nothing. Before the first attempt it may test the fence at
	// the target, and undoes the test.
	Prepare(ctx context.Context, t Task) (base string, err error)
	// Collect copies what is to be published out of the sandbox. Nothing is public after it.
	Collect(ctx context.Context, t Task, run Exec) (Collected, error)
	// Publish publishes. A nil error comes with PublishDone, or with PublishRefused when
	// nothing was or will be published. With an error the state is PublishBegun: the result
	// is unknown.
	Publish(ctx context.Context, t Task) (Publish, error)
	// Resolve finds out what became of a publication that was begun, and prevents it where
	// it has not happened: PublishDone, PublishRefused or, where that cannot be known,
	// PublishUnknown. An error means that it cannot be asked now.
	Resolve(ctx context.Context, t Task, by string) (Publish, error)
}

// Exec runs a command in the task's sandbox.
type Exec func(ctx context.Context, c providers.Command) (sandbox.Exit, error)

// Breaker keeps attempts away from a place where most of them fail.
type Breaker interface {
	// Allow returns fault.KindRefused while attempts at the place are suspended.
	Allow(ctx context.Context, place string) (Permit, error)
}

// Permit is the breaker's permission for one attempt.
type Permit struct {
	// Started is called when the program runs, which may take hours: other attempts need
	// not wait for its end to know that the place works.
	Started func(ctx context.Context)
	// Done is called with the class of the attempt's exit; "" = it says nothing about the
	// place.
	Done func(ctx context.Context, class sandbox.Class)
}

// MemoryAdmission is the free memory of this machine, for sandboxes that run on it.
type MemoryAdmission interface {
	// CheckFree returns nil when mb more fit, else a short reason.
	CheckFree(ctx context.Context, profile string, mb int64) error
}

// Observer receives the progress of a task, for people. All methods but Output are called
// by one goroutine at a time.
type Observer interface {
	// Changed is called after each change that this process made or saw.
	Changed(t Task)
	// Message is one line for the operator.
	Message(text string)
	// Output is a line of the program.
	Output(line sandbox.LogLine)
}

// forgetWork drops the work that is kept for the publication of a task that is over.
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
	Memory    MemoryAdmission // nil = not checked
	Observer  Observer        // nil = none
	Owner     Owner
	// Continue starts a process that brings a task to its end, and returns its owner. Nil =
	// a sweep leaves such a task as it is.
	Continue func(ctx context.Context, t Task) (Owner, error)
	// BeginEnds begins the journal of ends that a task asks for; nil = none is kept.
	BeginEnds func(ctx context.Context, why runs.Origin, targets []sandbox.Sandbox) *runs.Run
	// CallbackURL is the control plane that is notified of tasks with Spec.Callback; their
	// programs get it. "" = none.
	CallbackURL string
	// Alive reports whether another owner's process is dead (False), alive (True), or on a
	// host that cannot be checked (Unknown). Nil = Unknown.
	Alive func(Owner) sandbox.Verdict
	// HostBound reports whether a profile's sandboxes are visible only on the host that
	// made them: that another host finds none proves nothing. Nil = no profile's are.
	HostBound func(profile string) bool
	// ReadsProveEnds reports whether the reads of a profile show the state of the machine
	// itself, so that requests to end a sandbox need not be recorded. Nil = no profile's
	// do.
	ReadsProveEnds func(profile string) bool
	// DeleteOnEnd reports whether terminate keeps what costs money, so that a task's
	// sandboxes are to be deleted. Nil = false.
	DeleteOnEnd func(profile string) bool
	// Protected is why the operator keeps a sandbox (safety.Protection): a kept one stays
	// then although its time is over. Nil = nothing is protected.
	Protected func(sandbox.Sandbox) string
	// Jitter returns a number in [0,1); nil = 0.5.
	Jitter func() float64
	// Nonce makes unique names; nil = random ones.
	Nonce func() string
	// CrashPoint is called at each named point of a task's life; tests end the process
	// there. Nil = nothing happens.
	CrashPoint func(point string)
	// SettleTime is for how long after its sender has given up a create without an answer
	// may still make a sandbox, or the listing may lack it; 0 where an error proves that
	// nothing was made. Nil = a minute.
	SettleTime func(profile string) time.Duration
}
