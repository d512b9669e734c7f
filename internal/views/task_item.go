package views

import (
	"cmp"
	"time"

	"sbx/internal/output"
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// TaskHead is what every document says of a task.
type TaskHead struct {
	Task          string     `json:"task" table:",whole"`              // The task.
	Key           *string    `json:"key" table:",wide"`                // Its key; null without one.
	State         task.State `json:"state" table:",whole"`             // Its state.
	Phase         *string    `json:"phase" table:""`                   // What it is at, within its state.
	StopReason    *string    `json:"stop_reason" table:"WHY"`          // Why it was stopped.
	PendingReason *string    `json:"pending_reason" table:"WAITS FOR"` // What it waits for.
	Provider      string     `json:"provider" table:""`                // The profile at which it runs.
	Sandbox       *string    `json:"sandbox" table:",whole,spare"`     // The sandbox of its last attempt, as PROFILE/ID.
}

// TaskTail is the rest of it.
type TaskTail struct {
	Publish            *PublicationItem `json:"publish"`                           // Its publication; null where it publishes nothing.
	Warm               bool             `json:"warm"`                              // True: an earlier version of sbx created its sandbox ahead.
	TerminatedVerified bool             `json:"terminated_verified" table:",wide"` // True: every sandbox made for it was seen to be gone.
	Kept               *KeptSandbox     `json:"kept"`                              // The sandbox that it has kept.
	ResumedFrom        *string          `json:"resumed_from"`                      // The task in whose sandbox it goes on.
	CreatedAt          *time.Time       `json:"created_at" table:"AGE"`            // When it was launched.
	DeadlineAt         *time.Time       `json:"deadline_at" table:",wide"`         // When it is given up.
	Owner              *OwnerItem       `json:"owner"`                             // The process that runs it.
}

// TaskListItem is one task in a list.
type TaskListItem struct {
	TaskHead

	Attempt     int            `json:"attempt" table:""`           // The attempt that runs, or the last.
	AttemptsMax int            `json:"attempts_max" table:",wide"` // How many attempts it has.
	Class       *sandbox.Class `json:"class" table:""`             // The class of its last exit.
	Cause       *sandbox.Cause `json:"cause" table:""`             // What ended its last attempt.
	ExitCode    *int           `json:"exit_code" table:"EXIT"`     // The exit code of its last attempt.

	TaskTail
}

// TaskItem is one task in full.
type TaskItem struct {
	TaskHead

	Attempts []AttemptItem `json:"attempts"` // Its attempts, oldest first.

	TaskTail

	Timeline []EventItem `json:"timeline"` // What happened to it, oldest first.
	Why      *string     `json:"why"`      // Why it ended as it did; null while it runs and where it completed.
	Next     []string    `json:"next"`     // What to type next.
}

// AttemptItem is one attempt of a task.
type AttemptItem struct {
	N               int                 `json:"n"`                // Its number, from 1.
	Sandbox         *string             `json:"sandbox"`          // Its sandbox, as PROFILE/ID; null where none was made.
	Reused          bool                `json:"reused"`           // True: the sandbox was there before.
	ExitCode        *int                `json:"exit_code"`        // The exit code; 128+n for a death by signal n.
	RawExit         *string             `json:"raw_exit"`         // The exit as the provider spells it.
	Signal          *string             `json:"signal"`           // The signal that ended it, such as SIGKILL.
	Class           *sandbox.Class      `json:"class"`            // The class of the exit, which --retry-on takes.
	Cause           *sandbox.Cause      `json:"cause"`            // What ended it.
	Confidence      *sandbox.Confidence `json:"confidence"`       // How sure that is.
	Evidence        []EvidenceItem      `json:"evidence"`         // What was seen.
	DurationSeconds *float64            `json:"duration_seconds"` // How long it ran.
	Messages        *int                `json:"messages"`         // The messages of the agent's session; null where none was named.
	Retry           *RetryItem          `json:"retry"`            // Whether another attempt follows; null while it runs.
	Limit           *string             `json:"limit"`            // The limit of sbx that ended it.
	MemoryMB        *int64              `json:"memory_mb"`        // The limit of memory, in MiB.
	PeakMB          *int64              `json:"peak_mb"`          // The most memory that it used, in MiB.
	OOMKills        *int64              `json:"oom_kills"`        // How often the kernel has ended a process for memory.
	GoneAt          *time.Time          `json:"gone_at"`          // When its sandbox was seen to be gone.
	Gone            *string             `json:"gone"`             // How that was seen.
}

// RetryItem says whether another attempt follows.
type RetryItem struct {
	Again        bool    `json:"again"`         // True: it follows.
	Why          string  `json:"why"`           // Why, or why not; empty where it needs no word.
	DelaySeconds float64 `json:"delay_seconds"` // How long it is waited before.
	Free         bool    `json:"free"`          // True: the attempt does not count.
}

// PublicationItem is what became of a task's work.
type PublicationItem struct {
	State   string     `json:"state"`   // none, published or refused, or what it is at.
	Target  *string    `json:"target"`  // Where it goes.
	Commit  *string    `json:"commit"`  // The commit.
	At      *time.Time `json:"at"`      // When it was published.
	Fence   *string    `json:"fence"`   // What keeps it from being published after a stop.
	Message *string    `json:"message"` // What the publishing command or the remote said.
}

// KeptSandbox is a sandbox that outlives its task.
type KeptSandbox struct {
	Ref       string     `json:"ref"`        // PROFILE/ID.
	ExpiresAt *time.Time `json:"expires_at"` // Until when it is kept.
	Waits     bool       `json:"waits"`      // True: `sbx resume` can go on in it.
}

// OwnerItem is the process that runs a task.
type OwnerItem struct {
	Host  string          `json:"host"`  // Its host.
	PID   int             `json:"pid"`   // Its number.
	Alive sandbox.Verdict `json:"alive"` // Whether it runs; unknown for another host.
}

func (r TaskRow) head() TaskHead {
	h := TaskHead{
		Task: r.ID, Key: orNil(r.Key), State: r.State, Phase: orNil(string(r.Phase)), StopReason: orNil(string(r.Reason)), PendingReason: orNil(r.Waits), Provider: r.place(),
	}
	if ref, made := r.SandboxRef(); made {
		h.Sandbox = new(ref.String())
	}
	return h
}

func (r TaskRow) tail() TaskTail {
	t := TaskTail{
		Publish: r.publication(), Warm: r.Spec.Warm, TerminatedVerified: !r.VerifiedAt.IsZero() && !r.canGoOn(), ResumedFrom: orNil(r.ResumedFrom),
		CreatedAt: output.Time(r.CreatedAt), DeadlineAt: output.Time(r.DeadlineAt),
	}
	if r.Kept != nil {
		t.Kept = &KeptSandbox{r.Kept.Ref.String(), output.Time(r.Kept.ExpiresAt), r.canGoOn()}
	}
	if r.Owner.PID != 0 {
		t.Owner = &OwnerItem{r.Owner.Host, r.Owner.PID, r.Alive}
	}
	return t
}

func (r TaskRow) listItem() TaskListItem {
	e := r.lastExit()
	return TaskListItem{
		TaskHead: r.head(), Attempt: len(r.Attempts), AttemptsMax: r.Spec.Attempts, Class: orNil(e.Class), Cause: orNil(e.Cause), ExitCode: e.Code, TaskTail: r.tail(),
	}
}

// Item is the task in full, as documents have it.
func (r TaskRow) Item() TaskItem {
	item := TaskItem{
		TaskHead: r.head(), Attempts: make([]AttemptItem, len(r.Attempts)), TaskTail: r.tail(),
		Timeline: make([]EventItem, len(r.Notes)), Why: orNil(r.Refused), Next: r.nextCommands(),
	}
	for i, a := range r.Attempts {
		item.Attempts[i] = attemptItem(a)
	}
	for i, n := range r.Notes {
		item.Timeline[i] = EventItem{output.Time(n.At), n.Event, orNil(n.Detail)}
	}
	return item
}

func (r TaskRow) publication() *PublicationItem {
	if !r.Spec.Publishes() {
		return nil
	}
	p := r.Publish
	return &PublicationItem{
		State: cmp.Or(string(p.State), "none"), Target: orNil(cmp.Or(p.Target, r.Spec.Push, r.Spec.Publish)), Commit: orNil(p.Commit), At: output.Time(p.At),
		Fence: orNil(p.Fence), Message: orNil(p.Message),
	}
}

func attemptItem(a task.Attempt) AttemptItem {
	e := task.Exit{}
	if a.Exit != nil {
		e = *a.Exit
	}
	item := AttemptItem{
		N: a.N, Reused: a.Reused, ExitCode: e.Code, RawExit: orNil(e.Raw), Signal: orNil(e.Signal), Class: orNil(e.Class), Cause: orNil(e.Cause),
		Confidence: orNil(e.Confidence), Evidence: EvidenceList(e.Evidence), DurationSeconds: secondsOrNil(AttemptLength(a)), Messages: a.Messages,
		Limit: orNil(string(a.Expired)), MemoryMB: positiveOrNil(a.MemoryMB), PeakMB: a.PeakMB, OOMKills: a.OOMKills, GoneAt: output.Time(a.GoneAt), Gone: orNil(a.Gone),
	}
	if a.Sandbox != "" {
		item.Sandbox = new(a.Ref().String())
	}
	if r := a.Retry; r != nil {
		item.Retry = &RetryItem{r.Again, r.Why, output.Seconds(r.Delay), r.Free}
	}
	return item
}

// positiveOrNil is nil for what is not above zero.
func positiveOrNil(n int64) *int64 { return orNil(max(0, n)) }
