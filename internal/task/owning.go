package task

// take gives the right to go on to a process, and to nobody else.
func (t *Task) take(o Owner) {
	t.Fence++
	t.Owner, t.LeaseUntil = o, t.ReadAt.Add(LeaseFor)
	t.cut()
}

// Hold takes a task that nobody holds, for the process that goes on with it: also
// one that waits and has no attempt yet is somebody's. ErrHeld when it is another's.
func (t *Task) Hold(o Owner) error {
	switch {
	case t.State.Over():
		return ErrOver
	case t.Phase == Stopping, t.Owner == o && t.Held():
		return errNothing
	case t.Held():
		return ErrHeld
	}
	t.take(o)
	return nil
}

// Hand gives a task to the process that was started to go on with it, unless that has
// taken it already.
func (t *Task) Hand(from, to Owner) error {
	if t.State.Over() || t.Owner != from {
		return errNothing
	}
	t.take(to)
	return nil
}

// Renew says that the owner is alive.
func (t *Task) Renew(fence int64) error {
	if err := t.mine(fence); err != nil {
		return err
	}
	t.LeaseUntil = t.ReadAt.Add(LeaseFor)
	return nil
}

// Adopt takes over what a dead process left. dead says that the owner is known to
// be dead, so that its lease need not be waited for.
func (t *Task) Adopt(o Owner, dead bool) error {
	switch {
	case t.State.Over():
		return ErrOver
	case t.Held() && !dead:
		return ErrHeld
	}
	a := t.Last()
	asked := a != nil && a.CutAt.IsZero()
	t.take(o)
	if asked && dead {
		a.Dead = !a.CutAt.IsZero()
	}
	t.note("adopted", o.Who)
	return nil
}
