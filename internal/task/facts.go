package task

import (
	"time"

	"sbx/internal/sandbox"
)

// Found notes a sandbox that an attempt's create turned out to have made. It has to
// be seen to be gone, also where nothing was believed to have been made.
func (t *Task) Found(n int, id string) error {
	a, err := t.attemptNumber(n)
	if err != nil {
		return err
	}
	if a.Sandbox != "" {
		return errUnchanged
	}
	a.Sandbox, a.GoneAt, a.Gone = id, time.Time{}, "" // what was taken for nothing is there after all
	t.addNote("found", a.Ref().String())
	return nil
}

// Gone notes that nothing of an attempt is left. It takes no fence: it is a fact,
// and takes nobody's right away.
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

// EndAsked notes that an attempt's sandbox is about to be asked to end. An acknowledged
// request stays what it is: nothing that is asked after it takes that back.
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

// Keep takes the last attempt's sandbox out of the task: it lives on by itself.
func (t *Task) Keep(fence int64, until time.Time) error {
	if err := t.checkFence(fence); err != nil {
		return err
	}
	a := t.Last()
	if a == nil || a.Sandbox == "" || !a.GoneAt.IsZero() || t.Phase != Stopping || t.Verdict != Completed {
		return ErrNotOwner
	}
	t.Kept = &Kept{Ref: a.Ref(), ExpiresAt: until, Host: a.Host}
	if t.Spec.Warm {
		t.Kept.Owner = t.Owner
	}
	t.addNote("kept", a.Ref().String())
	return nil
}

// Finish makes the verdict final, once nothing of the task is left.
func (t *Task) Finish() error {
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Phase != Stopping:
		return ErrNotOwner
	case !t.AllGone():
		return ErrNotGone
	}
	t.State, t.Phase = t.Verdict, Working
	t.EndedAt, t.VerifiedAt = t.ReadAt, t.ReadAt
	t.LeaseUntil = time.Time{}
	t.addNote(string(t.State), "")
	return nil
}
