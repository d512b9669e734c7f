// Package task launches work in sandboxes and brings each task to exactly one end: it
// assigns, follows, retries, stops and publishes attempts, and takes over the tasks of dead
// processes.
//
// The rules are pure functions on a Task (machine.go, facts.go, retry.go). Each change is
// one compare-and-swap of the stored row, so that exactly one of a concurrent stop,
// timeout, publication and takeover wins. A task ends only when every sandbox that was made
// for it was seen to be gone. The Runner applies the rules; each phase has a file:
// begin.go, follow.go, publish.go, finish.go.
//
// Wire formats, SQL, git and output do not belong here: the package declares the interfaces
// that it needs.
package task

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Task is one piece of work with all its attempts. Only methods of Task change it, inside
// Ledger.Change.
type Task struct {
	ID     string `json:"id"`
	Key    string `json:"key,omitempty"`
	Spec   Spec   `json:"spec"`
	State  State  `json:"state"`
	Phase  Phase  `json:"phase,omitempty"`
	Fence  int64  `json:"fence"` // grows whenever the task changes its owner
	Reason Reason `json:"reason,omitempty"`
	// Verdict is the final state once everything made for the task is gone.
	Verdict State `json:"verdict,omitempty"`
	// Waits is why it has not begun: "memory_budget", "retry", "breaker".
	Waits   string    `json:"waits,omitempty"`
	Yielded bool      `json:"yielded,omitempty"` // its memory is released until the next attempt
	NextAt  time.Time `json:"next_at,omitzero"`  // of the next attempt
	Owner   Owner     `json:"owner,omitzero"`
	StopBy  string    `json:"stop_by,omitempty"`
	StopAt  time.Time `json:"stop_at,omitzero"`
	Refused string    `json:"refused,omitempty"` // why it failed although no program did

	Attempts []Attempt `json:"attempts,omitempty"`
	Publish  Publish   `json:"publish,omitzero"`
	// Onto is the commit of the branch to publish to before the first attempt; "" = there was no such branch.
	Onto string `json:"onto,omitempty"`
	// Branch is the branch that was made for the task, recorded before the push that makes it.
	Branch      *MadeBranch `json:"branch,omitempty"`
	Kept        *Kept       `json:"kept,omitempty"`
	ResumedFrom string      `json:"resumed_from,omitempty"`
	// For a task that goes on in a kept sandbox: it answered, or a new one had to be made.
	Resumed   bool `json:"resumed,omitempty"`
	Recreated bool `json:"recreated,omitempty"`

	// Sweeps counts the sweeps that could not settle it; the next one may try at SweepAfter.
	Sweeps     int       `json:"sweeps,omitempty"`
	SweepAfter time.Time `json:"sweep_after,omitzero"`

	Notes []Note `json:"notes,omitempty"`

	CreatedAt  time.Time `json:"created_at"`
	DeadlineAt time.Time `json:"deadline_at,omitzero"` // by the store's clock; zero before the first attempt
	EndedAt    time.Time `json:"ended_at,omitzero"`
	VerifiedAt time.Time `json:"verified_at,omitzero"` // everything made for it was seen to be gone

	LeaseUntil     time.Time `json:"-"`
	ReadAt         time.Time `json:"-"` // the store's clock when this was read
	version        int64
	needsAdmission bool // this change asks for memory of the budget
}

// Profiles are those at which it was made, or may be.
func (t Task) Profiles() []string {
	all := append([]string{t.Spec.Provider}, t.Spec.Fallback...)
	for _, a := range t.Attempts {
		all = append(all, a.Ref().Provider)
	}
	if t.Kept != nil {
		all = append(all, t.Kept.Ref.Provider)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" })
}

// Owner is the process that runs a task.
type Owner struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Birth string `json:"birth,omitempty"` // distinguishes two processes with one PID; "" = not known
	Who   string `json:"who"`
}

// Attempt is one try: at most one sandbox, and one program in it.
type Attempt struct {
	N        int    `json:"n"`
	Fence    int64  `json:"fence"`
	Provider string `json:"provider"`
	Host     string `json:"host,omitempty"` // that asked for the sandbox
	Nonce    string `json:"nonce"`          // a label of its sandbox
	Sandbox  string `json:"sandbox,omitempty"`
	// Reused reports that the sandbox existed before: another task had kept it.
	Reused bool `json:"reused,omitempty"`
	// Settled reports that the result of the create is known: Sandbox, or nothing.
	Settled bool `json:"settled,omitempty"`

	// NeverMade reports that the create was never sent, or was refused for certain: no program of the attempt has
	// run anywhere. An empty listing does not show that.
	NeverMade bool `json:"never_made,omitempty"`

	IntentAt  time.Time `json:"intent_at"`
	CutAt     time.Time `json:"cut_at,omitzero"`     // when the requester lost the right to request the sandbox, before the result was known
	Dead      bool      `json:"dead,omitempty"`      // the requester was known to be dead at CutAt
	StartedAt time.Time `json:"started_at,omitzero"` // of the program
	ExpiresAt time.Time `json:"expires_at,omitzero"` // when its sandbox ends by its own limit, as its create said; zero = not known
	OutputAt  time.Time `json:"output_at,omitzero"`  // of the last output
	EndedAt   time.Time `json:"ended_at,omitzero"`
	GoneAt    time.Time `json:"gone_at,omitzero"` // its sandbox was seen to be gone
	Gone      string    `json:"gone,omitempty"`   // how that was seen

	// EndRequest is the last request to end the sandbox, with its answer. After a request
	// that was refused or not answered, a missing record does not prove the end. Nil where
	// the machine itself proves the end.
	EndRequest *sandbox.EndRequest `json:"end_request,omitempty"`

	Exit     *Exit  `json:"exit,omitempty"`
	Fault    string `json:"fault,omitempty"`     // the kind of failure that kept a program from running
	MemoryMB int64  `json:"memory_mb,omitempty"` // its limit
	PeakMB   *int64 `json:"peak_mb,omitempty"`
	OOMKills *int64 `json:"oom_kills,omitempty"`
	Messages *int   `json:"messages,omitempty"` // of the agent, before the end; nil = not known
	Session  string `json:"session,omitempty"`  // the agent's own name of its session; "" = not known
	// Tail is the end of the output of a program that did not end well: its sandbox, with its log, may be deleted.
	Tail  []string `json:"tail,omitempty"`
	Retry *Retry   `json:"retry,omitempty"`
	// Expired is the limit that ended it.
	Expired Reason `json:"expired,omitempty"`
	// Extended reports that the program was silent for longer than the limit, and yet
	// active.
	Extended bool `json:"extended,omitempty"`
}

// neverEntered reports whether the sandbox that the attempt was to use was gone.
func (a Attempt) neverEntered() bool {
	return a.Reused && a.StartedAt.IsZero() && a.Exit != nil && a.Expired == ReasonNone
}

// mayHaveRun reports whether a program of the attempt may have run: it had a sandbox that it could use. Such an
// attempt counts, whatever ended it.
func (a Attempt) mayHaveRun() bool { return a.Sandbox != "" && !a.neverEntered() }

// Ref names the attempt's sandbox; without one its ID is empty.
func (a Attempt) Ref() sandbox.Ref { return sandbox.Ref{Provider: a.Provider, ID: a.Sandbox} }

// Exit is the stored form of sandbox.Exit.
type Exit struct {
	Code       *int               `json:"code"`
	Raw        string             `json:"raw"`
	Signal     string             `json:"signal,omitempty"`
	Class      sandbox.Class      `json:"class"`
	Cause      sandbox.Cause      `json:"cause,omitempty"`
	Confidence sandbox.Confidence `json:"confidence,omitempty"`
	Evidence   []sandbox.Evidence `json:"evidence,omitempty"`
}

// Retry is the decision after an attempt.
type Retry struct {
	Again bool          `json:"again"`
	Why   string        `json:"why"`
	Delay time.Duration `json:"delay_ns,omitempty"`
	// Free reports that the attempt does not count, because the infrastructure failed.
	Free     bool  `json:"free,omitempty"`
	MemoryMB int64 `json:"memory_mb,omitempty"` // of the next attempt; 0 = as before
	Failover bool  `json:"failover,omitempty"`  // the next attempt goes to the fallback
}

// Publish is the result of publishing the work.
type Publish struct {
	State   PublishState `json:"state"`
	Target  string       `json:"target,omitempty"`
	Fence   string       `json:"fence,omitempty"` // "remote" or "local": what holds back a late publisher
	Base    string       `json:"base,omitempty"`  // the commit of the branch before
	Commit  string       `json:"commit,omitempty"`
	At      time.Time    `json:"at,omitzero"` // of the gate, then of the end
	Message string       `json:"message,omitempty"`
}

// Kept is a sandbox that outlives its task.
type Kept struct {
	Ref       sandbox.Ref `json:"ref"`
	ExpiresAt time.Time   `json:"expires_at"`
	// Host is where it runs, for a host-bound profile.
	Host string `json:"host,omitempty"`
}

// Last is the latest attempt; nil before the first.
func (t *Task) Last() *Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// Counted is the number of attempts that count, including the current one. One that was repeated for nothing counts
// once its sandbox is found.
func (t *Task) Counted() int {
	n := 0
	for _, a := range t.Attempts {
		if a.Retry == nil || !a.Retry.Free || a.mayHaveRun() {
			n++
		}
	}
	return n
}

// NeverRan reports whether the task has failed, and no sandbox was ever made for it: launching it again launches it
// once. A task that was stopped counts as run, since a person has decided about it.
func (t *Task) NeverRan() bool {
	return (t.State == Failed || t.State == TimedOut) && t.madeNothing()
}

// EndsUnrun reports whether the task is on its way to an end as one that never ran.
func (t *Task) EndsUnrun() bool {
	return t.Phase == Stopping && (t.Verdict == Failed || t.Verdict == TimedOut) && t.madeNothing()
}

func (t *Task) madeNothing() bool {
	return !slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return !a.NeverMade || a.Sandbox != "" })
}

// Held reports whether an owner's lease runs, by the store's clock.
func (t *Task) Held() bool { return t.Owner.PID != 0 && t.ReadAt.Before(t.LeaseUntil) }

// AllGone reports whether nothing made for the task is left, except what was kept.
func (t *Task) AllGone() bool {
	for _, a := range t.Attempts {
		if a.GoneAt.IsZero() && !t.keepsSandbox(a) {
			return false
		}
	}
	return true
}

func (t *Task) keepsSandbox(a Attempt) bool {
	return t.Kept != nil && a.Sandbox != "" && t.Kept.Ref == a.Ref()
}

// New makes a task that has not begun. owner is about to begin it, with a lease from now
// on.
func New(id, key string, spec Spec, owner Owner, now time.Time) Task {
	return Task{
		ID: id, Key: key, Spec: spec, State: Pending, Owner: owner, Fence: 1, CreatedAt: now.UTC(), ReadAt: now, LeaseUntil: now.Add(LeaseFor),
		Notes: []Note{{At: now.UTC(), Event: "created", Detail: owner.Who}},
	}
}

// State is the state of a task. The last four are final.
type State string

// The states, in the order of a task's life.
const (
	Pending   State = "pending"  // no attempt has begun, or it waits for memory
	Assigned  State = "assigned" // an attempt is being made, or waited for
	Running   State = "running"  // its program runs, or its end is being verified
	Completed State = "completed"
	Failed    State = "failed"
	Stopped   State = "stopped"
	TimedOut  State = "timed_out"
)

// States lists all states in the order of a task's life.
func States() []State {
	return []State{Pending, Assigned, Running, Completed, Failed, Stopped, TimedOut}
}

// Final reports whether the task has ended and never changes again.
func (s State) Final() bool {
	switch s {
	case Completed, Failed, Stopped, TimedOut:
		return true
	case Pending, Assigned, Running:
	}
	return false
}

// Phase divides the state running.
type Phase string

// The phases of running.
const (
	Working    Phase = ""           // the program runs, or its work is being collected
	Publishing Phase = "publishing" // the gate was passed
	Stopping   Phase = "stopping"   // the end is decided, and its sandboxes are being ended
)

// Reason is why a task was ended before its program ended.
type Reason string

// The reasons.
const (
	ReasonNone       Reason = ""
	ReasonStopped    Reason = "stopped"    // a stop was asked for
	ReasonCommand    Reason = "command"    // the program's time was over
	ReasonAttempt    Reason = "attempt"    // the attempt's time was over
	ReasonDeadline   Reason = "deadline"   // the task's time was over
	ReasonInactivity Reason = "inactivity" // it showed no activity
	ReasonLost       Reason = "lost"       // its owner is dead, and no process can go on
)

// PublishState is the progress of a publication.
type PublishState string

// The states of a publication.
const (
	PublishNone    PublishState = ""          // the gate was not passed
	PublishBegun   PublishState = "begun"     // the gate was passed, and the result is not known yet
	PublishDone    PublishState = "published" // seen to be done
	PublishRefused PublishState = "refused"   // seen not to be done, for ever
	PublishNothing PublishState = "nothing"   // there was nothing to publish
	PublishUnknown PublishState = "unknown"   // it was begun, and its result cannot be known any more
)

// Timers and bounds.
const (
	LeaseFor      = 30 * time.Second
	RenewEvery    = 5 * time.Second
	SettleLook    = time.Second            // between two searches for what a create may have made
	DeadManGrace  = 120 * time.Second      // from the attempt's limit to the provider's own
	MaxExtension  = 5                      // times the inactivity limit, however active a silent program is
	BusyShare     = 0.02                   // of a core: what counts as activity
	FirstLook     = 5 * time.Millisecond   // for the end of a program, after the start
	SlowestLook   = 500 * time.Millisecond // for the end of a program, later
	EndWait       = 30 * time.Second       // until a sandbox's end is seen
	EndPatience   = 5 * time.Minute        // until a sandbox's end is seen, before the next attempt is given up
	CreateGrace   = 5 * time.Second        // for a create's answer that is not needed any more
	LostAfter     = time.Hour              // until a task without an owner is ended, where neither its host nor a deadline does so
	InfraAttempts = 3                      // faults of the infrastructure that are not counted as attempts
)

// The exit codes of `sbx run` beside the program's own.
const (
	CodeTimedOut = 124
	CodeNotRun   = 125
	CodeKilled   = 137
	CodeStopped  = 130
)

// ExitCode is the exit code of `sbx run` for a task that is over.
func (t *Task) ExitCode() int {
	switch t.State {
	case Completed:
		return 0
	case Stopped:
		return CodeStopped
	case TimedOut:
		return CodeTimedOut
	case Failed:
		return t.failureCode()
	case Pending, Assigned, Running:
	}
	return CodeNotRun
}

func (t *Task) failureCode() int {
	if code, own := t.ProgramFailure(); own {
		return code
	}
	return CodeNotRun
}

// ProgramFailure is the exit code with which the program itself has failed; false where sbx
// could not run it, did not see its end, or could not publish its work. It tells a program's own
// 125 from CodeNotRun.
func (t *Task) ProgramFailure() (code int, own bool) {
	a := t.Last()
	if t.State != Failed || a == nil || a.Exit == nil || t.Publish.State == PublishRefused || t.Publish.State == PublishUnknown {
		return 0, false
	}
	switch a.Exit.Class {
	case sandbox.ClassLauncher, sandbox.ClassAuth, sandbox.ClassInfra, sandbox.ClassTransport, sandbox.ClassGone:
		return 0, false
	case sandbox.ClassOOM, sandbox.ClassKilledUnknown, sandbox.ClassKilledByUs:
		if a.Exit.Code == nil {
			return CodeKilled, true
		}
	case sandbox.ClassOK, sandbox.ClassAgentError, sandbox.ClassUsage, sandbox.ClassEnvironment, sandbox.ClassCrash,
		sandbox.ClassTimeout, sandbox.ClassStopped, sandbox.ClassUnknown:
	}
	if a.Exit.Code == nil || *a.Exit.Code < 1 || *a.Exit.Code > 255 {
		return 0, false
	}
	return *a.Exit.Code, true
}
