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

// ForbidPublication makes sure that nothing of a task becomes public any more: the first of the
// two lines of a stop. After nil nothing will be. fault.KindRefused around
// ErrPublished: it is public already; around ErrPublishing: it is just being
// published, and nobody can hold that back (its target knows no fence);
// fault.KindUnverified around ErrDoubt.
func (s *Stopper) ForbidPublication(ctx context.Context, id, by string) (Task, error) {
	for {
		t, err := s.o.Ledger.Change(ctx, id, func(n *Task) error {
			if n.Spec.NoForeign && n.Owner != s.o.Owner && !n.State.Final() {
				return fault.New(fault.KindUnsupported, "task %s may be stopped only by the process that runs it (db_backed_stop is off): pid %d on %s",
					n.ID, n.Owner.PID, n.Owner.Host).WithHint("press Ctrl-C there, or end its sandbox with `sbx terminate`")
			}
			return n.Stop(by)
		})
		switch {
		case err == nil, errors.Is(err, ErrFinal):
			return t, nil
		case errors.Is(err, ErrPublished):
			return t, fault.New(fault.KindRefused, "%w: %s", ErrPublished, t.Publish.describeTarget())
		case errors.Is(err, ErrPublicationUnknown):
			return t, fault.New(fault.KindUnverified, "%w: %s", ErrPublicationUnknown, t.Publish.describeTarget()).WithHint("look there")
		case !errors.Is(err, ErrPublishing):
			return t, err
		}
		if err := s.settlePublication(ctx, t, by); err != nil {
			return t, err
		}
	}
}

// TooLate says of an error of Forbid that the task was decided before the stop: End
// still ends what is left of it.
func TooLate(err error) bool {
	return errors.Is(err, ErrPublished) || errors.Is(err, ErrPublicationUnknown)
}

// describeTarget is what a publication has published, and where to.
func (p Publish) describeTarget() string {
	if p.Commit == "" {
		return p.Target
	}
	return "commit " + p.Commit + " at " + p.Target
}

// settlePublication reaches for the target of a task that has passed the gate,
// whoever is there first wins, and writes down what it saw there: its runner may be
// dead.
func (s *Stopper) settlePublication(ctx context.Context, t Task, by string) error {
	if s.o.Publisher == nil || !s.o.Publisher.Remote(t) && !s.o.isAbandoned(t) {
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
	if errors.Is(err, ErrNotOwner) || errors.Is(err, ErrFinal) { // somebody else has settled it meanwhile
		return nil
	}
	return err
}

// End makes the end of a decided task certain: the second line of a stop. nil when
// everything made for it is gone, with what it has kept; fault.KindUnverified
// otherwise, fault.KindRefused where another task goes on in what it has kept.
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

// Stop is asked for by anybody, at any time. When it returns nil, nothing of the
// task becomes public any more. ErrPublishing and ErrPublished mean too late,
// ErrDoubt that it may be.
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

// StopAfterRefusal is Stop for a task that is publishing, after the remote was seen to
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
