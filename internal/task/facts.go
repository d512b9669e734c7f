package task

import (
	"cmp"
	"errors"
	"time"

	"sbx/internal/sandbox"
)

// Found records a sandbox that an attempt's create turned out to have made. Its end has to
// be seen, also where the create was believed to have made nothing.
func (t *Task) Found(n int, id string) error {
	a, err := t.attemptNumber(n)
	if err != nil {
		return err
	}
	if a.Sandbox != "" {
		return errUnchanged
	}
	a.Sandbox, a.GoneAt, a.Gone = id, time.Time{}, "" // the attempt is not gone after all
	t.addNote("found", a.Ref().String())
	return nil
}

// Gone records that nothing of an attempt is left. It needs no fence, because it is a fact
// and takes no right from any process.
func (t *Task) Gone(n int, how string) error {
	a, err := t.attemptNumber(n)
	if err != nil {
		return err
	}
	if !a.GoneAt.IsZero() {
		return errUnchanged
	}
	if a.EndedAt.IsZero() {
		a.EndedAt = t.ReadAt
	}
	a.Settled, a.GoneAt, a.Gone = true, t.ReadAt, how
	t.addNote("gone", how)
	return nil
}

// EndAsked records a request to end an attempt's sandbox, before it is sent. It does not
// replace an acknowledged request.
func (t *Task) EndAsked(n int, r sandbox.EndRequest) error {
	a, err := t.attemptNumber(n)
	if err != nil {
		return err
	}
	if a.EndRequest != nil && a.EndRequest.Acknowledged {
		return errUnchanged
	}
	a.EndRequest = &r
	return nil
}

func (t *Task) attemptNumber(n int) (*Attempt, error) {
	if t.State.Final() {
		return nil, ErrFinal
	}
	if n < 1 || n > len(t.Attempts) {
		return nil, ErrNotOwner
	}
	return &t.Attempts[n-1], nil
}

// Keep detaches the last attempt's sandbox from the task, so that it outlives it.
func (t *Task) Keep(fence int64, until time.Time) error {
	if err := t.checkFence(fence); err != nil {
		return err
	}
	a := t.Last()
	if a == nil || a.Sandbox == "" || !a.GoneAt.IsZero() || t.Phase != Stopping || t.Verdict != Completed {
		return ErrNotOwner
	}
	t.Kept = &Kept{Ref: a.Ref(), ExpiresAt: until, Host: a.Host}
	t.addNote("kept", a.Ref().String())
	return nil
}

// Finish makes the verdict final once nothing of the task is left.
func (t *Task) Finish() error {
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Phase != Stopping:
		return ErrNotOwner
	case !t.AllGone(), t.hasBranch():
		return ErrNotGone
	}
	t.State, t.Phase = t.Verdict, Working
	t.EndedAt, t.VerifiedAt = t.ReadAt, t.ReadAt
	t.LeaseUntil = time.Time{}
	t.addNote(string(t.State), "")
	return nil
}

// recordNothingMade records that an attempt's create was seen to have made nothing, unless
// its maker has recorded a sandbox meanwhile, which then has to be ended.
func (t *Task) recordNothingMade(n int) error {
	if a, err := t.attemptNumber(n); err != nil || a.Sandbox != "" {
		return cmp.Or(err, errUnchanged)
	}
	return t.recordGone(n, "two searches for the result of its create found nothing")
}

// recordGone is Gone, which another process may have recorded first, and in the same change
// Finish where this was the last that was left of a decided task.
func (t *Task) recordGone(n int, how string) error {
	if err := t.Gone(n, how); err != nil && !errors.Is(err, errUnchanged) {
		return err
	}
	if t.Phase == Stopping && t.AllGone() && !t.hasBranch() {
		return t.Finish()
	}
	return nil
}

// transferTo makes o the only owner.
func (t *Task) transferTo(o Owner) {
	t.Fence++
	t.Owner, t.LeaseUntil = o, t.ReadAt.Add(LeaseFor)
	t.markRequesterLost()
}

// Acquire takes a task without a holder for the process that works on it, also a task that
// waits and has no attempt yet. ErrHeld when another process holds it.
func (t *Task) Acquire(o Owner) error {
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Phase == Stopping, t.Owner == o && t.Held():
		return errUnchanged
	case t.Held():
		return ErrHeld
	}
	t.transferTo(o)
	return nil
}

// HandOver gives a task to the process that was started to finish it, unless that process
// has taken it already.
func (t *Task) HandOver(from, to Owner) error {
	if t.State.Final() || t.Owner != from {
		return errUnchanged
	}
	t.transferTo(to)
	return nil
}

// Renew extends the lease of a living owner.
func (t *Task) Renew(fence int64) error {
	if err := t.checkFence(fence); err != nil {
		return err
	}
	t.LeaseUntil = t.ReadAt.Add(LeaseFor)
	return nil
}

// Adopt takes over the task of a dead process. dead reports that the owner is known to be
// dead, so that its lease need not expire first.
func (t *Task) Adopt(o Owner, dead bool) error {
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Held() && !dead:
		return ErrHeld
	}
	a := t.Last()
	asked := a != nil && a.CutAt.IsZero()
	t.transferTo(o)
	if asked && dead {
		a.Dead = !a.CutAt.IsZero()
	}
	t.addNote("adopted", o.Who)
	return nil
}
