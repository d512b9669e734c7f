package task

import (
	"errors"
	"time"

	"sbx/internal/sandbox"
)

// Why a change is not allowed. None of them has changed anything.
var (
	ErrMoved      = errors.New("the task is somebody else's by now")    // the fence grew, or its state is another
	ErrOver       = errors.New("the task has ended")                    // it never changes again
	ErrPublishing = errors.New("too late: it is publishing")            // the gate was passed before
	ErrPublished  = errors.New("too late: it has been published")       //
	ErrDoubt      = errors.New("nobody can tell whether it is public")  // its publication was begun, and its end not seen
	ErrStopped    = errors.New("a stop was asked for")                  //
	ErrLate       = errors.New("the task's time is over")               // its deadline has passed
	ErrSpent      = errors.New("all attempts are used up")              //
	ErrNotGone    = errors.New("what was made before is not gone yet")  //
	ErrHeld       = errors.New("its owner is alive")                    //
	errNothing    = errors.New("there is nothing to change about that") // a change that need not be written
)

// Note is one line of a task's timeline.
type Note struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
}

func (t *Task) note(event, detail string) {
	t.Notes = append(t.Notes, Note{At: t.ReadAt, Event: event, Detail: detail})
}

// mine is the rule of fencing: who holds an old fence writes nothing.
func (t *Task) mine(fence int64) error {
	switch {
	case t.State.Over():
		return ErrOver
	case t.Fence != fence:
		return ErrMoved
	}
	return nil
}

// works is mine for changes that only an undecided task takes.
func (t *Task) works(fence int64) error {
	if err := t.mine(fence); err != nil {
		return err
	}
	if t.Phase != Working {
		return ErrMoved
	}
	return nil
}

// Assign begins the next attempt: what is about to be made is written down before
// anything is. It takes the task from whoever has it no more.
func (t *Task) Assign(o Owner, a Attempt) error {
	last := t.Last()
	switch {
	case t.State.Over():
		return ErrOver
	case t.Phase != Working, t.State == Running, last != nil && last.Retry == nil:
		return ErrMoved
	case t.Held() && t.Owner != o:
		return ErrHeld
	case t.late():
		return ErrLate
	case t.Counted() >= t.Spec.Attempts:
		return ErrSpent
	case !t.AllGone():
		return ErrNotGone
	}
	t.take(o)
	t.State, t.Waits, t.NextAt, t.Yielded, t.admits = Assigned, "", time.Time{}, false, true
	if t.DeadlineAt.IsZero() && t.Spec.Limits.Deadline > 0 {
		t.DeadlineAt = t.ReadAt.Add(t.Spec.Limits.Deadline) // it holds from the first attempt on
	}
	a.N, a.Fence, a.IntentAt, a.Host = len(t.Attempts)+1, t.Fence, t.ReadAt, o.Host
	t.Attempts = append(t.Attempts, a)
	t.note("assigned", "attempt "+number(a.N)+" at "+a.Provider)
	return nil
}

// late says that the deadline has passed.
func (t *Task) late() bool { return !t.DeadlineAt.IsZero() && !t.ReadAt.Before(t.DeadlineAt) }

// cut notes since when whoever asked for the last attempt's sandbox has no right to
// ask for it any more.
func (t *Task) cut() {
	if a := t.Last(); a != nil && a.Sandbox == "" && a.GoneAt.IsZero() && a.CutAt.IsZero() {
		a.CutAt = t.ReadAt
	}
}

// Wait notes why a task has not begun.
func (t *Task) Wait(why string) error {
	switch {
	case t.State.Over():
		return ErrOver
	case t.Phase != Working || t.State == Running:
		return ErrMoved
	case t.Waits == why:
		return errNothing
	}
	t.Waits = why
	t.Yielded = t.Yielded || why == waitsForBudget
	return nil
}

// Created notes what the create has made.
func (t *Task) Created(fence int64, made sandbox.Sandbox) error {
	if err := t.works(fence); err != nil {
		return err
	}
	a := t.Last()
	if t.State != Assigned || a == nil || a.Sandbox != "" {
		return ErrMoved
	}
	a.Sandbox, a.Settled, a.StartedAt = made.ID, true, t.ReadAt
	if made.Limits.MemoryBytes != nil {
		a.MemoryMB = *made.Limits.MemoryBytes / sandbox.MiB
	}
	t.State = Running
	t.note("running", a.Ref().String())
	return nil
}

// Started notes that the program runs in a sandbox that was there before.
func (t *Task) Started(fence int64) error {
	if err := t.works(fence); err != nil {
		return err
	}
	a := t.Last()
	if t.State != Assigned || a == nil || !a.Reused || a.Exit != nil {
		return ErrMoved
	}
	a.StartedAt = t.ReadAt
	t.State = Running
	if t.Spec.Sandbox.ID == "" {
		t.note("running", a.Ref().String()+" (made ahead)")
	} else {
		t.note("resumed", a.Ref().String())
	}
	return nil
}

// Leave gives the lease back without an end: the next one goes on at once.
func (t *Task) Leave(fence int64) error {
	if err := t.mine(fence); err != nil {
		return err
	}
	t.LeaseUntil = t.ReadAt
	t.note("left", "")
	return nil
}

// Ended is what is known of an attempt when it is over.
type Ended struct {
	Exit     sandbox.Exit
	Usage    sandbox.Usage
	OutputAt time.Time
	Messages *int
	Session  string
	Extended bool
	Nothing  bool // the create is known to have made nothing
}

// End notes how the attempt's program ended, or why none ran.
func (t *Task) End(fence int64, e Ended) error {
	if err := t.works(fence); err != nil {
		return err
	}
	a := t.Last()
	if a == nil || t.State == Pending || a.Retry != nil {
		return ErrMoved
	}
	a.end(t.ReadAt, e)
	t.note("ended", string(e.Exit.Class))
	return nil
}

func (a *Attempt) end(at time.Time, e Ended) {
	if a.EndedAt.IsZero() {
		a.EndedAt = at
	}
	a.Exit = &Exit{
		Code: e.Exit.Code, Raw: e.Exit.Raw, Signal: e.Exit.Signal, Class: e.Exit.Class,
		Cause: e.Exit.Cause, Confidence: e.Exit.Confidence, Evidence: e.Exit.Evidence,
	}
	a.OutputAt, a.Messages, a.Session, a.Extended = e.OutputAt, e.Messages, e.Session, a.Extended || e.Extended
	if e.Usage.OOMKills != nil {
		a.OOMKills = e.Usage.OOMKills
	}
	if e.Usage.MemoryPeakBytes != nil {
		mb := *e.Usage.MemoryPeakBytes / sandbox.MiB
		a.PeakMB = &mb
	}
	if e.Nothing {
		a.Settled, a.GoneAt, a.Gone = true, at, "nothing was made"
	}
}

// Expire ends the attempt because a limit was reached. The fence grows, so that
// nothing that was under way for it can pass the gate.
func (t *Task) Expire(fence int64, why Reason) error {
	if err := t.works(fence); err != nil {
		return err
	}
	t.take(t.Owner)
	t.Reason = why
	if a := t.Last(); a != nil && t.State != Pending && a.Retry == nil {
		a.Expired = why
		if a.Exit == nil {
			a.EndedAt = t.ReadAt
		}
	}
	t.note("expired", string(why))
	return nil
}

// Again lets a new attempt begin later. The one before must be over and gone.
func (t *Task) Again(fence int64, r Retry) error {
	if err := t.works(fence); err != nil {
		return err
	}
	a := t.Last()
	switch {
	case a == nil || a.EndedAt.IsZero() || a.Retry != nil:
		return ErrMoved
	case a.GoneAt.IsZero():
		return ErrNotGone
	}
	a.Retry = &r
	t.State, t.Waits, t.NextAt, t.Reason = Assigned, "retry", t.ReadAt.Add(r.Delay), ReasonNone
	t.note("retry", r.Why)
	return nil
}

// Pass is the gate: the one point where it is decided that a task's work becomes
// public. No stop, no limit and no other process can be on this side of it.
func (t *Task) Pass(fence int64, p Publish) error {
	if err := t.works(fence); err != nil {
		return err
	}
	a := t.Last()
	switch {
	case !t.StopAt.IsZero():
		return ErrStopped
	case t.late():
		return ErrLate
	case t.State != Running || a == nil || a.Exit == nil || a.Exit.Class != sandbox.ClassOK || a.Expired != ReasonNone:
		return ErrMoved
	}
	p.State, p.At = PublishBegun, t.ReadAt
	t.Phase, t.Publish = Publishing, p
	t.note("publishing", p.Target)
	return nil
}

// Doubt notes why the end of the publication was not seen.
func (t *Task) Doubt(fence int64, why string) error {
	if err := t.mine(fence); err != nil {
		return err
	}
	if t.Phase != Publishing {
		return ErrMoved
	}
	t.Publish.Message = why
	return nil
}

// Settle ends the publication with what was seen of it.
func (t *Task) Settle(fence int64, p Publish, verdict State) error {
	if err := t.mine(fence); err != nil {
		return err
	}
	if t.Phase != Publishing {
		return ErrMoved
	}
	p.At = t.ReadAt
	t.Publish = p
	t.decide(verdict, t.Reason)
	t.note(string(p.State), p.Commit)
	return nil
}

// Conclude decides the end of a task that publishes nothing (any more).
func (t *Task) Conclude(fence int64, verdict State, why Reason, said string) error {
	if err := t.works(fence); err != nil {
		return err
	}
	t.Refused = said
	if a := t.Last(); a != nil && a.Retry == nil {
		a.Retry = &Retry{Why: said}
	}
	t.decide(verdict, why)
	t.note("concluded", string(verdict))
	return nil
}

func (t *Task) decide(verdict State, why Reason) {
	t.State, t.Phase, t.Verdict, t.Reason, t.Waits = Running, Stopping, verdict, why, ""
	t.cut()
}

// Stop is asked for by anybody, at any time. When it returns nil, nothing of the
// task becomes public any more. ErrPublishing and ErrPublished mean too late,
// ErrDoubt that it may be.
func (t *Task) Stop(by string) error {
	switch {
	case t.Publish.State == PublishDone:
		return ErrPublished
	case t.Publish.State == PublishDoubt:
		return ErrDoubt
	case t.State.Over():
		return ErrOver
	case t.Phase == Publishing:
		return ErrPublishing
	case t.Phase == Stopping:
		return errNothing
	}
	t.stop(by)
	return nil
}

func (t *Task) stop(by string) {
	t.Fence++
	t.StopBy, t.StopAt = by, t.ReadAt
	t.decide(Stopped, ReasonStopped)
	t.note("stop", by)
}

// Poisoned is Stop for a task that is publishing, after the remote was seen to
// refuse any publication for ever.
func (t *Task) Poisoned(by string) error {
	switch {
	case t.State.Over():
		return ErrOver
	case t.Phase != Publishing:
		return ErrMoved
	}
	t.Publish.State, t.Publish.At, t.Publish.Message = PublishRefused, t.ReadAt, "a stop reached the remote first"
	t.stop(by)
	return nil
}
