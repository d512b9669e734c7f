package task

import (
	"time"

	"sbx/internal/sandbox"
)

// Task is one piece of work with all that was tried for it. Only the methods of
// this file's neighbours change it, and only inside Ledger.change.
type Task struct {
	ID     string `json:"id"`
	Key    string `json:"key,omitempty"`
	Spec   Spec   `json:"spec"`
	State  State  `json:"state"`
	Phase  Phase  `json:"phase,omitempty"`
	Fence  int64  `json:"fence"` // grows whenever the right to go on changes hands
	Reason Reason `json:"reason,omitempty"`
	// Verdict is what the task becomes when everything made for it is gone.
	Verdict State `json:"verdict,omitempty"`
	// Waits says why it has not begun: "memory_budget", "retry", "breaker".
	Waits   string    `json:"waits,omitempty"`
	Yielded bool      `json:"yielded,omitempty"` // its memory is given back until the next attempt
	NextAt  time.Time `json:"next_at,omitzero"`  // of the next attempt
	Owner   Owner     `json:"owner,omitzero"`
	StopBy  string    `json:"stop_by,omitempty"`
	StopAt  time.Time `json:"stop_at,omitzero"`
	Refused string    `json:"refused,omitempty"` // why it failed without a program's fault

	Attempts    []Attempt `json:"attempts,omitempty"`
	Publish     Publish   `json:"publish,omitzero"`
	Kept        *Kept     `json:"kept,omitempty"`
	ResumedFrom string    `json:"resumed_from,omitempty"`
	// Of a task that goes on in a kept sandbox: it answered, or a new one had to be
	// made.
	Resumed   bool `json:"resumed,omitempty"`
	Recreated bool `json:"recreated,omitempty"`

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

// Owner is the process that runs a task.
type Owner struct {
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Birth string `json:"birth,omitempty"` // tells two processes of one number apart; "" = not known
	Who   string `json:"who"`
}

// Attempt is one try: at most one sandbox, and one program in it.
type Attempt struct {
	N        int    `json:"n"`
	Fence    int64  `json:"fence"`
	Provider string `json:"provider"`
	Host     string `json:"host,omitempty"` // of who asked for its sandbox
	Nonce    string `json:"nonce"`          // its sandbox carries it as a label
	Sandbox  string `json:"sandbox,omitempty"`
	// Reused says that the sandbox was there before: another task had kept it, or
	// it waited in the pool.
	Reused bool `json:"reused,omitempty"`
	// Settled says that it is known what the create has made: Sandbox, or nothing.
	Settled bool `json:"settled,omitempty"`

	IntentAt  time.Time `json:"intent_at"`
	CutAt     time.Time `json:"cut_at,omitzero"`     // who made it lost the right to, before what it made was known
	Dead      bool      `json:"dead,omitempty"`      // and was known to be dead by then: it asks for nothing any more
	StartedAt time.Time `json:"started_at,omitzero"` // the program
	OutputAt  time.Time `json:"output_at,omitzero"`  // the last output
	EndedAt   time.Time `json:"ended_at,omitzero"`
	GoneAt    time.Time `json:"gone_at,omitzero"` // its sandbox was seen to be gone
	Gone      string    `json:"gone,omitempty"`   // by what

	// EndRequest is the last request to end its sandbox, and what was answered: who takes
	// the task over does not take a record that is missing after one which was refused or
	// not answered for a proof. Nil where the machine itself proves the end.
	EndRequest *sandbox.EndRequest `json:"end_request,omitempty"`

	Exit     *Exit  `json:"exit,omitempty"`
	Fault    string `json:"fault,omitempty"`     // the kind of failure that kept a program from running
	MemoryMB int64  `json:"memory_mb,omitempty"` // its limit
	PeakMB   *int64 `json:"peak_mb,omitempty"`
	OOMKills *int64 `json:"oom_kills,omitempty"`
	Messages *int   `json:"messages,omitempty"` // of the agent, before the end; nil = it told none
	Session  string `json:"session,omitempty"`  // the agent's own name of its session; "" = it told none
	Retry    *Retry `json:"retry,omitempty"`
	// Expired is the limit that ended it.
	Expired Reason `json:"expired,omitempty"`
	// Extended says that silence was longer than the limit, and was no stillness.
	Extended bool `json:"extended,omitempty"`
}

// neverEntered says that it found the sandbox that was to be there gone.
func (a Attempt) neverEntered() bool {
	return a.Reused && a.StartedAt.IsZero() && a.Exit != nil && a.Expired == ReasonNone
}

// Ref names the attempt's sandbox; without one it has no ID.
func (a Attempt) Ref() sandbox.Ref { return sandbox.Ref{Provider: a.Provider, ID: a.Sandbox} }

// Exit is sandbox.Exit as it is kept.
type Exit struct {
	Code       *int               `json:"code"`
	Raw        string             `json:"raw"`
	Signal     string             `json:"signal,omitempty"`
	Class      sandbox.Class      `json:"class"`
	Cause      sandbox.Cause      `json:"cause,omitempty"`
	Confidence sandbox.Confidence `json:"confidence,omitempty"`
	Evidence   []sandbox.Evidence `json:"evidence,omitempty"`
}

// Retry is what was decided after an attempt, and why.
type Retry struct {
	Again bool          `json:"again"`
	Why   string        `json:"why"`
	Delay time.Duration `json:"delay_ns,omitempty"`
	// Free says that the attempt does not count: the infrastructure failed.
	Free     bool  `json:"free,omitempty"`
	MemoryMB int64 `json:"memory_mb,omitempty"` // of the next attempt; 0 = as before
	Failover bool  `json:"failover,omitempty"`  // the next attempt goes to the fallback
}

// Publish is what came of making the work public.
type Publish struct {
	State   PublishState `json:"state"`
	Target  string       `json:"target,omitempty"`
	Fence   string       `json:"fence,omitempty"` // "remote" or "local": what holds back a late publisher
	Base    string       `json:"base,omitempty"`  // what the branch was at before
	Commit  string       `json:"commit,omitempty"`
	At      time.Time    `json:"at,omitzero"` // of the gate, then of the end
	Message string       `json:"message,omitempty"`
}

// Kept is a sandbox that outlives its task.
type Kept struct {
	Ref       sandbox.Ref `json:"ref"`
	ExpiresAt time.Time   `json:"expires_at"`
	// Host is where it runs, of a profile whose sandboxes no other host can see.
	Host string `json:"host,omitempty"`
	// Owner is whose stock it waits in (Pool): without that process it is of no use.
	Owner Owner `json:"owner,omitzero"`
}

// Last is the latest attempt; nil before the first.
func (t *Task) Last() *Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// Counted is how many attempts were burnt or are under way.
func (t *Task) Counted() int {
	n := 0
	for _, a := range t.Attempts {
		if a.Retry == nil || !a.Retry.Free {
			n++
		}
	}
	return n
}

// Held says that a living owner's lease runs, by the store's clock.
func (t *Task) Held() bool { return t.Owner.PID != 0 && t.ReadAt.Before(t.LeaseUntil) }

// AllGone says that nothing made for the task is left, but for what was kept.
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

// New makes a task that nobody has begun with. Its owner is who is about to; until
// then the lease is counted from now on.
func New(id, key string, spec Spec, owner Owner, now time.Time) Task {
	return Task{
		ID: id, Key: key, Spec: spec, State: Pending, Owner: owner, Fence: 1, CreatedAt: now.UTC(), ReadAt: now, LeaseUntil: now.Add(LeaseFor),
		Notes: []Note{{At: now.UTC(), Event: "created", Detail: owner.Who}},
	}
}
