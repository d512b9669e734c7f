package task

import (
	"time"

	"sbx/internal/sandbox"
)

// Found notes a sandbox that an attempt's create turned out to have made. It has to
// be seen to be gone, also where nothing was believed to have been made.
func (t *Task) Found(n int, id string) error {
	a, err := t.attempt(n)
	if err != nil {
		return err
	}
	if a.Sandbox != "" {
		return errNothing
	}
	a.Sandbox, a.GoneAt, a.Gone = id, time.Time{}, "" // what was taken for nothing is there after all
	t.note("found", a.Ref().String())
	return nil
}

// Gone notes that nothing of an attempt is left. It takes no fence: it is a fact,
// and takes nobody's right away.
func (t *Task) Gone(n int, how string) error {
	a, err := t.attempt(n)
	if err != nil {
		return err
	}
	if !a.GoneAt.IsZero() {
		return errNothing
	}
	if a.EndedAt.IsZero() {
		a.EndedAt = t.ReadAt
	}
	a.Settled, a.GoneAt, a.Gone = true, t.ReadAt, how
	t.note("gone", how)
	return nil
}

// EndAsked notes that an attempt's sandbox is about to be asked to end. An acknowledged
// request stays what it is: nothing that is asked after it takes that back.
func (t *Task) EndAsked(n int, r sandbox.EndRequest) error {
	a, err := t.attempt(n)
	if err != nil {
		return err
	}
	if a.EndRequest != nil && a.EndRequest.Acknowledged {
		return errNothing
	}
	a.EndRequest = &r
	return nil
}

func (t *Task) attempt(n int) (*Attempt, error) {
	if t.State.Over() {
		return nil, ErrOver
	}
	if n < 1 || n > len(t.Attempts) {
		return nil, ErrMoved
	}
	return &t.Attempts[n-1], nil
}

// Keep takes the last attempt's sandbox out of the task: it lives on by itself.
func (t *Task) Keep(fence int64, until time.Time) error {
	if err := t.mine(fence); err != nil {
		return err
	}
	a := t.Last()
	if a == nil || a.Sandbox == "" || !a.GoneAt.IsZero() || t.Phase != Stopping || t.Verdict != Completed {
		return ErrMoved
	}
	t.Kept = &Kept{Ref: a.Ref(), ExpiresAt: until, Host: a.Host}
	if t.Spec.Warm {
		t.Kept.Owner = t.Owner
	}
	t.note("kept", a.Ref().String())
	return nil
}

// Finish makes the verdict final, once nothing of the task is left.
func (t *Task) Finish() error {
	switch {
	case t.State.Over():
		return ErrOver
	case t.Phase != Stopping:
		return ErrMoved
	case !t.AllGone():
		return ErrNotGone
	}
	t.State, t.Phase = t.Verdict, Working
	t.EndedAt, t.VerifiedAt = t.ReadAt, t.ReadAt
	t.LeaseUntil = time.Time{}
	t.note(string(t.State), "")
	return nil
}
