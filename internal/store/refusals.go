package store

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

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
		WithHint("wait for it, or until its time is over: a holder that died loses it then")
}

// lostError refuses a renewal or a release by a former holder; now is the stored lease.
func lostError(mine, now Lease) error {
	switch {
	case now.Fence != mine.Fence && now.Holder != "":
		return fault.New(fault.KindLocked, "%s is no longer held by %s: %s has it until %s",
			mine.Name, mine.Holder, now.Holder, now.Until.Format(time.RFC3339)).
			WithHint("this run was taken for dead: it must not go on")
	case now.Holder != "" && now.Fence == mine.Fence:
		return fault.New(fault.KindLocked, "%s is no longer held by %s: its time was over at %s",
			mine.Name, mine.Holder, now.Until.Format(time.RFC3339)).
			WithHint("others may have taken this run for dead: it must not go on")
	}
	return fault.New(fault.KindLocked, "%s is not held by %s", mine.Name, mine.Holder).
		WithHint("it was given back, or never taken")
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
		WithHint("is its id whole, and is this the store that it was added to?")
}

func taskTakenError(id string) error {
	return fault.Usage("there is a task %s already", id).WithHint("give the new one an id of its own")
}

// reservation is what all other live tasks reserve of a budget, in MB, and its limit;
// limit 0 = nothing was asked for.
type reservation struct{ others, limit int64 }

// swapError is why a change was not made: now is the stored task.
func swapError(want, now Task, r reservation) error {
	switch {
	case now.Ended:
		return fault.New(fault.KindRefused, "task %s is %s: %w", now.ID, now.State, ErrTaskEnded).
			WithHint("read it: what was to be changed comes too late")
	case now.Version != want.Version:
		return fault.New(fault.KindLocked, "task %s has version %d, not %d: %w", now.ID, now.Version, want.Version, ErrSwapped).
			WithHint("read it again, and decide anew")
	case want.Fence < now.Fence:
		return fault.Usage("the fence of task %s cannot fall from %d to %d", now.ID, now.Fence, want.Fence)
	case r.limit > 0:
		return fault.New(fault.KindRefused, "task %s wants %d MB, and others hold %d of the %d MB of budget %s: %w",
			now.ID, want.ReserveMB, r.others, r.limit, want.Budget, ErrBudget).
			WithHint("wait until one of them is over, or raise the budget")
	}
	return fault.New(fault.KindLocked, "task %s: %w", now.ID, ErrSwapped).WithHint("read it again, and decide anew")
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
		WithHint("read it again, and decide anew")
}
