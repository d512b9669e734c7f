package documents

import (
	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// taskHead is what every document says of a task.
type taskHead struct {
	// The task.
	Task string `json:"task"`
	// Its key; null without one.
	Key *string `json:"key"`
	// Its state.
	State task.State `json:"state"`
	// What it is at, within its state.
	Phase *string `json:"phase"`
	// Why it was stopped.
	StopReason *string `json:"stop_reason"`
	// What it waits for.
	PendingReason *string `json:"pending_reason"`
	// The profile at which it runs.
	Provider string `json:"provider"`
	// The sandbox of its last attempt, as PROFILE/ID.
	Sandbox *string `json:"sandbox"`
}

// taskTail is the rest of it.
type taskTail struct {
	// Its publication; null where it publishes nothing.
	Publish *publication `json:"publish"`
	// True: its sandbox was made ahead.
	Warm bool `json:"warm"`
	// True: every sandbox made for it was seen to be gone.
	TerminatedVerified bool `json:"terminated_verified"`
	// The sandbox that it has kept.
	Kept *kept `json:"kept"`
	// The task in whose sandbox it goes on.
	ResumedFrom *string `json:"resumed_from"`
	// When it was launched.
	CreatedAt *moment `json:"created_at"`
	// When it is given up.
	DeadlineAt *moment `json:"deadline_at"`
	// The process that runs it.
	Owner *owner `json:"owner"`
}

// taskRow is one task in a list.
type taskRow struct {
	taskHead

	// The attempt that runs, or the last.
	Attempt int `json:"attempt"`
	// How many attempts it has.
	AttemptsMax int `json:"attempts_max"`
	// The class of its last exit.
	Class *sandbox.Class `json:"class"`
	// What ended its last attempt.
	Cause *sandbox.Cause `json:"cause"`
	// The exit code of its last attempt.
	ExitCode *int `json:"exit_code"`

	taskTail
}

// taskItem is one task in full.
type taskItem struct {
	taskHead

	// Its attempts, oldest first.
	Attempts []attempt `json:"attempts"`

	taskTail

	// What happened to it, oldest first.
	Timeline []incident `json:"timeline"`
	// Why it ended as it did; null while it runs and where it completed.
	Why *string `json:"why"`
	// What to type next.
	Next []string `json:"next"`
}

// attempt is one attempt of a task.
type attempt struct {
	// Its number, from 1.
	N int `json:"n"`
	// Its sandbox, as PROFILE/ID; null where none was made.
	Sandbox *string `json:"sandbox"`
	// True: the sandbox was there before.
	Reused bool `json:"reused"`
	// The exit code; 128+n for a death by signal n.
	ExitCode *int `json:"exit_code"`
	// The exit as the provider spells it.
	RawExit *string `json:"raw_exit"`
	// The signal that ended it, such as SIGKILL.
	Signal *string `json:"signal"`
	// The class of the exit, which --retry-on takes.
	Class *sandbox.Class `json:"class"`
	// What ended it.
	Cause *sandbox.Cause `json:"cause"`
	// How sure that is.
	Confidence *sandbox.Confidence `json:"confidence"`
	// What was seen.
	Evidence []evidence `json:"evidence"`
	// How long it ran.
	DurationSeconds *float64 `json:"duration_seconds"`
	// The messages of the agent's session; null where none was named.
	Messages *int `json:"messages"`
	// Whether another attempt follows; null while it runs.
	Retry *retry `json:"retry"`
	// The limit of sbx that ended it.
	Limit *string `json:"limit"`
	// The limit of memory, in MiB.
	MemoryMB *float64 `json:"memory_mb"`
	// The most memory that it used, in MiB.
	PeakMB *float64 `json:"peak_mb"`
	// How often the kernel has ended a process for memory.
	OOMKills *int `json:"oom_kills"`
	// When its sandbox was seen to be gone.
	GoneAt *moment `json:"gone_at"`
	// How that was seen.
	Gone *string `json:"gone"`
}

// retry says whether another attempt follows.
type retry struct {
	// True: it follows.
	Again bool `json:"again"`
	// Why, or why not; empty where it needs no word.
	Why string `json:"why"`
	// How long it is waited before.
	DelaySeconds float64 `json:"delay_seconds"`
	// True: the attempt does not count.
	Free bool `json:"free"`
}

// publication is what became of a task's work.
type publication struct {
	// none, published or refused, or what it is at.
	State string `json:"state"`
	// Where it goes.
	Target *string `json:"target"`
	// The commit.
	Commit *string `json:"commit"`
	// When it was published.
	At *moment `json:"at"`
	// What keeps it from being published after a stop.
	Fence *string `json:"fence"`
	// What the publishing command or the remote said.
	Message *string `json:"message"`
}

// kept is a sandbox that outlives its task.
type kept struct {
	// PROFILE/ID.
	Ref string `json:"ref"`
	// Until when it is kept.
	ExpiresAt *moment `json:"expires_at"`
	// True: `sbx resume` can go on in it.
	Waits bool `json:"waits"`
}

// owner is the process that runs a task.
type owner struct {
	// Its host.
	Host string `json:"host"`
	// Its number.
	PID int `json:"pid"`
	// Whether it runs; unknown for another host.
	Alive sandbox.Verdict `json:"alive"`
}

// compared is one provider of run --compare.
type compared struct {
	taskItem

	// The profile that was compared.
	Compared string `json:"compared,omitempty"`
	// The exit code.
	ExitCode *int `json:"exit_code,omitempty"`
	// The class of the exit.
	Class *sandbox.Class `json:"class,omitempty"`
	// What ended it.
	Cause *sandbox.Cause `json:"cause,omitempty"`
	// How long it took to make the sandbox.
	CreateSeconds *float64 `json:"create_seconds,omitempty"`
	// How long it took to the first output.
	FirstOutputSeconds *float64 `json:"first_output_seconds,omitempty"`
	// How long the command ran.
	DurationSeconds *float64 `json:"duration_seconds,omitempty"`
	// The most memory that it used, in MiB.
	PeakMB *float64 `json:"peak_mb,omitempty"`
	// The limit of memory, in MiB.
	MemoryMB *float64 `json:"memory_mb,omitempty"`
	// The messages of the agent's session.
	Messages *int `json:"messages,omitempty"`
	// How often the kernel has ended a process for memory.
	OOMKills *int `json:"oom_kills,omitempty"`
}

// runDocument is the document of run: one item, or items with --file and --compare.
type runDocument struct {
	// Name and version of this form.
	Schema string `json:"schema"`
	// The task; null where none was launched.
	Item *taskItem `json:"item,omitempty"`
	// The tasks of --file, or the providers of --compare.
	Items []compared `json:"items,omitempty"`
	// False: some of them were not launched.
	Complete bool `json:"complete,omitempty"`
	// Always false.
	Truncated bool `json:"truncated,omitempty"`
	// How many tasks the file has.
	Tasks int `json:"tasks,omitempty"`
	// How many of them completed.
	Completed int `json:"completed,omitempty"`
	// How many of them were not launched.
	NotLaunched int `json:"not_launched,omitempty"`
	// What differs between the providers, in words.
	Difference string `json:"difference,omitempty"`

	outcome
}

// stopped is what a stop has reached for one task.
type stopped struct {
	// The task, or the word that names none.
	Task string `json:"task"`
	// True: nothing more is published.
	WillNotPublish bool `json:"will_not_publish"`
	// True: every sandbox made for it was seen to be gone.
	Gone bool `json:"gone"`
	// Its state.
	State *task.State `json:"state"`
	// After how long it could not publish any more.
	ForbiddenSeconds *float64 `json:"forbidden_seconds"`
	// After how long its sandboxes were seen to be gone.
	GoneSeconds *float64 `json:"gone_seconds"`
	// Why it was not stopped.
	Reason *string `json:"reason"`
}

// figure is one figure of the report.
type figure struct {
	// Its number.
	ID string `json:"id"`
	// The group that it belongs to.
	Group string `json:"group"`
	// What it measures.
	Title string `json:"title"`
	// The value.
	Value *float64 `json:"value"`
	// The unit of the value: count, messages, seconds or share.
	Unit string `json:"unit"`
	// What it should be.
	Target *string `json:"target"`
	// Whether it is so.
	Verdict sandbox.Verdict `json:"verdict"`
	// How many cases it is from.
	Samples int `json:"samples"`
	// Why there is no value.
	Why *string `json:"why"`
}

// reportDocument is the document of report.
type reportDocument struct {
	listOf[figure]

	// How many tasks it is from.
	Tasks *int `json:"tasks,omitempty"`
	// Why attempts failed, the most frequent first.
	Causes *[]failed `json:"causes,omitempty"`
	// The tasks to look at first.
	LookAt *[]lookAt `json:"look_at,omitempty"`
}

// failed counts the attempts that failed in one way.
type failed struct {
	// The class of the exit.
	Class sandbox.Class `json:"class"`
	// What ended them.
	Cause *sandbox.Cause `json:"cause"`
	// How many attempts.
	Attempts int `json:"attempts"`
	// The latest task of them.
	Latest string `json:"latest"`
}

// lookAt is a task to look at.
type lookAt struct {
	// The task.
	Task string `json:"task"`
	// Why.
	Why string `json:"why"`
}
