package store

import (
	"cmp"
	"errors"
	"maps"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

// Task is a stored task. Its meaning belongs to the package task: the store knows what it
// needs to find and compare tasks. ID, Key and Budget have at most 1 KiB.
type Task struct {
	ID         string
	Key        string // its idempotency key, unique; "" = none
	Spec       string // a fingerprint of the spec
	State      string
	Ended      bool      // it never changes again
	Version    int64     // grows by one with every change, from 1
	Fence      int64     // never falls
	Owner      string    // the holder; "" = none
	LeaseUntil time.Time // by the store's clock; zero = no holder
	Budget     string    // the budget of its reservation; "" = none
	ReserveMB  int64     // counts until the task has ended
	CreatedAt  time.Time
	UpdatedAt  time.Time // of the last change, by the store's clock
	Body       []byte    // JSON, opaque here; nil = none
	ReadAt     time.Time // the store's clock when it was read or written; not stored
}

// TaskQuery selects tasks. The zero value selects all.
type TaskQuery struct {
	Prefix string    // of the id
	Live   bool      // only those that have not ended
	Since  time.Time // created then or later
	Limit  int       // 0 = all
}

// Doc is a small document of some package: a breaker's state, a pool's entry. Kind and Key
// have at most 1 KiB.
type Doc struct {
	Kind, Key string
	Version   int64     // grows with every change; 0 = there is none
	Body      []byte    // JSON, opaque here; nil = none
	UpdatedAt time.Time // by the store's clock
	ReadAt    time.Time // the store's clock when it was read or written; not stored
}

// Why a conditional update changed nothing.
var (
	ErrSwapped   = errors.New("another process changed it")
	ErrTaskEnded = errors.New("it has ended and cannot change")
	ErrBudget    = errors.New("it does not fit into the budget")
)

// matches reports whether a query, apart from its limit, selects a task.
func (q TaskQuery) matches(t Task) bool {
	return strings.HasPrefix(t.ID, q.Prefix) && !t.CreatedAt.Before(q.Since) && (!q.Live || !t.Ended)
}

func compareCreation(a, b Task) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
}

// Lease is an exclusive right to a name until a time of the store's clock, which
// may differ from the clock of this host.
type Lease struct {
	Name   string
	Holder string
	Fence  int64 // grows with every Acquire of the name, from 1, and never falls
	Until  time.Time
}

// SeenCount counts observations.
type SeenCount struct {
	First time.Time
	Last  time.Time // the last that counted
	Count int
}

// Record is a sandbox that sbx created.
type Record struct {
	Provider  string // the profile
	ID        string
	TaskID    string
	AgentType string
	Owner     string // who asked for it
	Host      string // from where
	State     sandbox.State
	CreatedAt time.Time
	UpdatedAt time.Time
	EndedAt   time.Time // zero = no end was recorded
	Reason    string    // of the end
}

// Ref names the sandbox.
func (r Record) Ref() sandbox.Ref { return sandbox.Ref{Provider: r.Provider, ID: r.ID} }

// Run is the summary of a bulk run.
type Run struct {
	ID        string
	Verb      string // "cleanup"
	Layer     string // of the lines of defence that cron runs; "" = none
	Host      string
	Who       string
	StartedAt time.Time
	EndedAt   time.Time // zero = it runs, or it was killed
	Selected  int
	Counts    map[string]int // by outcome
	ExitCode  int
	Resumable bool
	Acted     bool     // false = a dry run
	Profiles  []string // whose listing was complete and whose endings all succeeded
}

// storedTime is a time as stored: UTC, whole microseconds.
func storedTime(at time.Time) time.Time { return fromMicros(toMicros(at)) }

// toMicros is a time as a column: microseconds since 1970, 0 for none.
func toMicros(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// storableText is a text that every store accepts. Names come from APIs; Postgres accepts
// neither NUL nor invalid UTF-8, and no sandbox may stay unrecorded because of its name.
func storableText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// storableBytes is storableText for a body: empty = nil. It shares no memory with the
// original.
func storableBytes(body []byte) []byte {
	if len(body) == 0 {
		return nil
	}
	return []byte(storableText(string(body)))
}

func (r Record) storable() Record {
	for _, field := range []*string{&r.Provider, &r.ID, &r.TaskID, &r.AgentType, &r.Owner, &r.Host, &r.Reason} {
		*field = storableText(*field)
	}
	r.CreatedAt, r.UpdatedAt, r.EndedAt = storedTime(r.CreatedAt), storedTime(r.UpdatedAt), storedTime(r.EndedAt)
	return r
}

// storable shares no memory with the original; nil becomes empty.
func (r Run) storable() Run {
	for _, field := range []*string{&r.ID, &r.Verb, &r.Layer, &r.Host, &r.Who} {
		*field = storableText(*field)
	}
	r.StartedAt, r.EndedAt = storedTime(r.StartedAt), storedTime(r.EndedAt)
	counts := make(map[string]int, len(r.Counts))
	maps.Copy(counts, r.Counts)
	r.Counts = counts
	r.Profiles = append([]string{}, r.Profiles...)
	return r
}

func (t Task) storable() Task {
	for _, field := range []*string{&t.ID, &t.Key, &t.Spec, &t.State, &t.Owner, &t.Budget} {
		*field = storableText(*field)
	}
	for _, at := range []*time.Time{&t.LeaseUntil, &t.CreatedAt, &t.UpdatedAt, &t.ReadAt} {
		*at = storedTime(*at)
	}
	t.Body = storableBytes(t.Body)
	return t
}

func (d Doc) storable() Doc {
	d.Kind, d.Key, d.Body = storableText(d.Kind), storableText(d.Key), storableBytes(d.Body)
	d.UpdatedAt, d.ReadAt = storedTime(d.UpdatedAt), storedTime(d.ReadAt)
	return d
}

func (r Record) checkRecord() error {
	if r.Provider == "" || r.ID == "" {
		return fault.Usage("a record needs a provider and an id, not %q and %q", r.Provider, r.ID)
	}
	return nil
}

func (r Run) checkRun() error {
	if r.ID == "" {
		return fault.Usage("a run needs an id")
	}
	return nil
}

func checkLease(name, holder string, ttl time.Duration) error {
	if name == "" || holder == "" || ttl < time.Microsecond {
		return fault.Usage("a lease needs a name, a holder and a time to live, not %q, %q and %s", name, holder, ttl)
	}
	return nil
}

// heldError refuses a lease that another process holds.
func heldError(lease Lease) error {
	return fault.New(fault.KindLocked, "%s is held by %s until %s", lease.Name, lease.Holder, lease.Until.Format(time.RFC3339)).
		WithHint("wait until it is released or expires: a holder that died loses it then")
}

// lostError refuses a renewal or a release by a former holder; now is the stored lease.
func lostError(mine, now Lease) error {
	switch {
	case now.Fence != mine.Fence && now.Holder != "":
		return fault.New(fault.KindLocked, "%s is no longer held by %s: %s has it until %s",
			mine.Name, mine.Holder, now.Holder, now.Until.Format(time.RFC3339)).
			WithHint("another process took this run for dead: it must not continue")
	case now.Holder != "" && now.Fence == mine.Fence:
		return fault.New(fault.KindLocked, "%s is no longer held by %s: it expired at %s",
			mine.Name, mine.Holder, now.Until.Format(time.RFC3339)).
			WithHint("other processes may take this run for dead: it must not continue")
	}
	return fault.New(fault.KindLocked, "%s is not held by %s", mine.Name, mine.Holder).
		WithHint("it was released, or never taken")
}

func noRecordError(ref sandbox.Ref) error {
	return fault.New(fault.KindNotFound, "there is no record of %s", ref).
		WithHint("sbx did not create it, or keeps its records in another store")
}

const (
	// maxText bounds an indexed text in bytes, below the limit of Postgres.
	maxText = 1 << 10
	// maxReservation keeps every sum of reservations inside an int64.
	maxReservation = 1 << 40
)

func (t Task) checkTask() error {
	switch {
	case t.ID == "":
		return fault.Usage("a task needs an id")
	case max(len(t.ID), len(t.Key), len(t.Budget)) > maxText:
		return fault.Usage("id, key and budget of a task have at most %d bytes", maxText)
	case t.ReserveMB < 0 || t.ReserveMB > maxReservation:
		return fault.Usage("task %s cannot reserve %d MB", t.ID, t.ReserveMB)
	}
	return nil
}

func (t Task) checkNewTask() error {
	if t.ReserveMB != 0 {
		return fault.Usage("task %s is added with a reservation, which only a change counts", t.ID)
	}
	return t.checkTask()
}

func (d Doc) checkDoc() error {
	switch {
	case d.Kind == "" || d.Key == "":
		return fault.Usage("a document needs a kind and a key, not %q and %q", d.Kind, d.Key)
	case max(len(d.Kind), len(d.Key)) > maxText:
		return fault.Usage("kind and key of a document have at most %d bytes", maxText)
	}
	return nil
}

func noTaskError(id string) error {
	return fault.New(fault.KindNotFound, "there is no task %s", id).
		WithHint("check that its id is complete and that this is the store that holds it")
}

func taskTakenError(id string) error {
	return fault.Usage("the task %s exists already", id).WithHint("give the new one another id")
}

// reservation is what all other live tasks reserve of a budget, in MB, and its limit;
// limit 0 = nothing was asked for.
type reservation struct{ others, limit int64 }

// swapError is why a change was not made: now is the stored task.
func swapError(want, now Task, r reservation) error {
	switch {
	case now.Ended:
		return fault.New(fault.KindRefused, "task %s is %s: %w", now.ID, now.State, ErrTaskEnded).
			WithHint("read it: it can no longer be changed")
	case now.Version != want.Version:
		return fault.New(fault.KindLocked, "task %s has version %d, not %d: %w", now.ID, now.Version, want.Version, ErrSwapped).
			WithHint("read it again and decide again")
	case want.Fence < now.Fence:
		return fault.Usage("the fencing token of task %s cannot decrease from %d to %d", now.ID, now.Fence, want.Fence)
	case r.limit > 0:
		return fault.New(fault.KindRefused, "task %s needs %d MB, and others hold %d of the %d MB of budget %s: %w",
			now.ID, want.ReserveMB, r.others, r.limit, want.Budget, ErrBudget).
			WithHint("wait until one of them has ended, or raise the budget")
	}
	return fault.New(fault.KindLocked, "task %s: %w", now.ID, ErrSwapped).WithHint("read it again and decide again")
}

// growsReservation reports whether a change lets the task reserve more of its new budget.
func growsReservation(want, now Task) bool {
	had := now.ReserveMB
	if now.Budget != want.Budget {
		had = 0
	}
	return !want.Ended && want.ReserveMB > had
}

func docSwapError(want Doc, now int64) error {
	return fault.New(fault.KindLocked, "%s %s has version %d, not %d: %w", want.Kind, want.Key, now, want.Version, ErrSwapped).
		WithHint("read it again and decide again")
}
