package task

import (
	"context"
	"errors"

	"sbx/internal/fault"
)

// Stopper stops tasks from any process and any host.
type Stopper struct{ o Options }

// NewStopper makes a Stopper.
func NewStopper(o Options) *Stopper { return &Stopper{o} }

// ForbidPublication makes sure that nothing of a task becomes public any more: the first
// part of a stop. It returns nil when nothing will be published; fault.KindRefused around
// ErrPublished when it is public already, and around ErrPublishing when it is being
// published and the target has no fence to prevent it; fault.KindUnverified around
// ErrPublicationUnknown.
func (s *Stopper) ForbidPublication(ctx context.Context, id, by string) (Task, error) {
	for {
		t, err := s.o.Ledger.Change(ctx, id, func(n *Task) error {
			if n.Spec.NoForeign && n.Owner != s.o.Owner && !n.State.Final() {
				return fault.New(fault.KindUnsupported, "task %s may be stopped only by the process that runs it (db_backed_stop is off): pid %d on %s",
					n.ID, n.Owner.PID, n.Owner.Host).WithHint("press Ctrl-C there, or terminate its sandbox with `sbx terminate`")
			}
			return n.Stop(by)
		})
		switch {
		case err == nil, errors.Is(err, ErrFinal):
			return t, nil
		case errors.Is(err, ErrPublished):
			return t, fault.New(fault.KindRefused, "%w: %s", ErrPublished, t.Publish.describeTarget())
		case errors.Is(err, ErrPublicationUnknown):
			return t, fault.New(fault.KindUnverified, "%w: %s", ErrPublicationUnknown, t.Publish.describeTarget()).WithHint("check the target")
		case !errors.Is(err, ErrPublishing):
			return t, err
		}
		if err := s.settlePublication(ctx, t, by); err != nil {
			return t, err
		}
	}
}

// TooLate reports whether an error of ForbidPublication means that the task was decided
// before the stop. End still ends what is left of it.
func TooLate(err error) bool {
	return errors.Is(err, ErrPublished) || errors.Is(err, ErrPublicationUnknown)
}

func (p Publish) describeTarget() string {
	if p.Commit == "" {
		return p.Target
	}
	return "commit " + p.Commit + " at " + p.Target
}

// settlePublication tries to forbid the publication of a task that has passed the gate at
// its target, and records the result: whichever of push and stop reaches the target first
// wins. The runner of the task may be dead.
func (s *Stopper) settlePublication(ctx context.Context, t Task, by string) error {
	if s.o.Publisher == nil || !s.o.Publisher.PushesToGit(t) && !s.o.isAbandoned(t) {
		return fault.New(fault.KindRefused, "%w", ErrPublishing)
	}
	p, err := s.o.Publisher.Resolve(ctx, t, by)
	if err != nil {
		return err
	}
	_, err = s.o.Ledger.Change(ctx, t.ID, func(n *Task) error {
		if p.State == PublishRefused {
			return n.StopAfterRefusal(by)
		}
		return n.RecordSeenPublication(p)
	})
	if errors.Is(err, ErrNotOwner) || errors.Is(err, ErrFinal) { // another process has settled it meanwhile
		return nil
	}
	return err
}

// End verifies the end of a decided task: the second part of a stop. It returns nil when
// everything made for the task is gone, including what it has kept; fault.KindUnverified
// otherwise, fault.KindRefused where another task uses what it has kept.
func (s *Stopper) End(ctx context.Context, t Task) (Task, error) {
	r := NewRunner(s.o, nil, nil)
	for !t.State.Final() {
		now, err := r.finishTask(ctx, t)
		if err != nil && !errors.Is(err, ErrFinal) {
			return now, err
		}
		if t, err = s.o.Ledger.Read(ctx, t.ID); err != nil {
			return t, err
		}
	}
	s.o.forgetWork(t)
	return t, s.o.endKept(ctx, t)
}

// Stop may be asked for by any process at any time. When it returns nil, nothing of the
// task becomes public any more. ErrPublishing and ErrPublished mean too late,
// ErrPublicationUnknown that it may be public.
func (t *Task) Stop(by string) error {
	switch {
	case t.Publish.State == PublishDone:
		return ErrPublished
	case t.Publish.State == PublishUnknown:
		return ErrPublicationUnknown
	case t.State.Final():
		return ErrFinal
	case t.Phase == Publishing:
		return ErrPublishing
	case t.Phase == Stopping:
		return errUnchanged
	}
	t.recordStop(by)
	return nil
}

func (t *Task) recordStop(by string) {
	t.Fence++
	t.StopBy, t.StopAt = by, t.ReadAt
	t.decideVerdict(Stopped, ReasonStopped)
	t.addNote("stop", by)
}

// StopAfterRefusal is Stop for a task that is publishing, after its remote was seen to
// refuse any publication for ever.
func (t *Task) StopAfterRefusal(by string) error {
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Phase != Publishing:
		return ErrNotOwner
	}
	t.Publish.State, t.Publish.At, t.Publish.Message = PublishRefused, t.ReadAt, "a stop reached the remote first"
	t.recordStop(by)
	return nil
}
