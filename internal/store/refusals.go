package store

import (
	"time"

	"sbx/internal/fault"
	"sbx/internal/sandbox"
)

func (r Record) check() error {
	if r.Provider == "" || r.ID == "" {
		return fault.Usage("a record needs a provider and an id, not %q and %q", r.Provider, r.ID)
	}
	return nil
}

func (r Run) check() error {
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

// held is the refusal of a lease that somebody holds.
func held(lease Lease) error {
	return fault.New(fault.KindLocked, "%s is held by %s until %s", lease.Name, lease.Holder, lease.Until.Format(time.RFC3339)).
		WithHint("wait for it, or until its time is over: a holder that died loses it then")
}

// lost is the refusal of a renewal or a release by a former holder; now is the
// lease as the store has it.
func lost(mine, now Lease) error {
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

func noRecord(ref sandbox.Ref) error {
	return fault.New(fault.KindNotFound, "there is no record of %s", ref).
		WithHint("sbx did not create it, or keeps its records in another store")
}
