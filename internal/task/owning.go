package task

// transferTo gives the right to go on to a process, and to nobody else.
func (t *Task) transferTo(o Owner) {
	t.Fence++
	t.Owner, t.LeaseUntil = o, t.ReadAt.Add(LeaseFor)
	t.markRequesterLost()
}

// Acquire takes a task that nobody holds, for the process that goes on with it: also
// one that waits and has no attempt yet is somebody's. ErrHeld when it is another's.
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

// HandOver gives a task to the process that was started to go on with it, unless that has
// taken it already.
func (t *Task) HandOver(from, to Owner) error {
	if t.State.Final() || t.Owner != from {
		return errUnchanged
	}
	t.transferTo(to)
	return nil
}

// Renew says that the owner is alive.
func (t *Task) Renew(fence int64) error {
	if err := t.checkFence(fence); err != nil {
		return err
	}
	t.LeaseUntil = t.ReadAt.Add(LeaseFor)
	return nil
}

// Adopt takes over what a dead process left. dead says that the owner is known to
// be dead, so that its lease need not be waited for.
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
