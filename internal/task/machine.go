package task

import (
	"errors"
	"strconv"
	"time"

	"sbx/internal/sandbox"
)

// Reasons why a change is not allowed. The task is unchanged then.
var (
	ErrNotOwner           = errors.New("another process holds the task now") // the fence grew, or its state is another
	ErrFinal              = errors.New("the task has ended")                 // it never changes again
	ErrPublishing         = errors.New("too late: it is publishing")         // the gate was passed before
	ErrPublished          = errors.New("too late: it has been published")
	ErrPublicationUnknown = errors.New("it is unknown whether it is public") // it was begun, and its end was not seen
	ErrStopped            = errors.New("a stop was requested")
	ErrLate               = errors.New("the task's time limit was reached") // its deadline has passed
	ErrAttemptsUsed       = errors.New("all attempts are used up")
	ErrNotGone            = errors.New("its earlier sandbox is not verified ended yet")
	ErrHeld               = errors.New("its runner is alive")
	errUnchanged          = errors.New("this cannot change") // the change need not be written
)

// Note is one line of a task's timeline.
type Note struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
}

func (t *Task) addNote(event, detail string) {
	t.Notes = append(t.Notes, Note{At: t.ReadAt, Event: event, Detail: detail})
}

// checkFence allows no change by a process with an old fence.
func (t *Task) checkFence(fence int64) error {
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Fence != fence:
		return ErrNotOwner
	}
	return nil
}

func (t *Task) checkWorking(fence int64) error {
	if err := t.checkFence(fence); err != nil {
		return err
	}
	if t.Phase != Working {
		return ErrNotOwner
	}
	return nil
}

// Assign begins the next attempt and takes the task: the intent is written down before a
// sandbox is requested.
func (t *Task) Assign(o Owner, a Attempt) error {
	last := t.Last()
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Phase != Working, t.State == Running, last != nil && last.Retry == nil:
		return ErrNotOwner
	case t.Held() && t.Owner != o:
		return ErrHeld
	case t.pastDeadline():
		return ErrLate
	case t.Counted() >= t.Spec.Attempts:
		return ErrAttemptsUsed
	case !t.AllGone():
		return ErrNotGone
	}
	t.transferTo(o)
	t.State, t.Waits, t.NextAt, t.Yielded, t.needsAdmission = Assigned, "", time.Time{}, false, true
	if t.DeadlineAt.IsZero() && t.Spec.Limits.Deadline > 0 {
		t.DeadlineAt = t.ReadAt.Add(t.Spec.Limits.Deadline) // it starts with the first attempt
	}
	a.N, a.Fence, a.IntentAt, a.Host = len(t.Attempts)+1, t.Fence, t.ReadAt, o.Host
	t.Attempts = append(t.Attempts, a)
	t.addNote("assigned", "attempt "+strconv.Itoa(a.N)+" at "+a.Provider)
	return nil
}

func (t *Task) pastDeadline() bool { return !t.DeadlineAt.IsZero() && !t.ReadAt.Before(t.DeadlineAt) }

// markRequesterLost records when the requester of the last attempt's sandbox lost the right
// to request it.
func (t *Task) markRequesterLost() {
	if a := t.Last(); a != nil && a.Sandbox == "" && a.GoneAt.IsZero() && a.CutAt.IsZero() {
		a.CutAt = t.ReadAt
	}
}

// Wait records why a task has not begun.
func (t *Task) Wait(why string) error {
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Phase != Working || t.State == Running:
		return ErrNotOwner
	case t.Waits == why:
		return errUnchanged
	}
	t.Waits = why
	t.Yielded = t.Yielded || why == waitsForBudget
	return nil
}

// Created records the sandbox that the create has made.
func (t *Task) Created(fence int64, made sandbox.Sandbox) error {
	if err := t.checkWorking(fence); err != nil {
		return err
	}
	a := t.Last()
	if t.State != Assigned || a == nil || a.Sandbox != "" {
		return ErrNotOwner
	}
	a.Sandbox, a.Settled, a.StartedAt, a.ExpiresAt = made.ID, true, t.ReadAt, made.ExpiresAt
	if made.Limits.MemoryBytes != nil {
		a.MemoryMB = *made.Limits.MemoryBytes / sandbox.MiB
	}
	t.State = Running
	t.addNote("running", a.Ref().String())
	return nil
}

// Started records that the program runs in a sandbox that existed before.
func (t *Task) Started(fence int64) error {
	if err := t.checkWorking(fence); err != nil {
		return err
	}
	a := t.Last()
	if t.State != Assigned || a == nil || !a.Reused || a.Exit != nil {
		return ErrNotOwner
	}
	a.StartedAt = t.ReadAt
	t.State = Running
	t.addNote("resumed", a.Ref().String())
	return nil
}

// ReleaseLease gives the lease back, so that another process can go on at once.
func (t *Task) ReleaseLease(fence int64) error {
	if err := t.checkFence(fence); err != nil {
		return err
	}
	t.LeaseUntil = t.ReadAt
	t.addNote("left", "")
	return nil
}

// postponeSweep records that a sweep could not settle the task.
func (t *Task) postponeSweep() {
	t.SweepAfter = t.ReadAt.Add(sweepPause(t.Sweeps))
	t.Sweeps++
}

// Ended is what is known of an attempt that has ended.
type Ended struct {
	Exit     sandbox.Exit
	Usage    sandbox.Usage
	OutputAt time.Time
	Messages *int
	Session  string
	Tail     []string
	Extended bool
	Nothing  bool // the create is known to have made nothing
}

// End records how the attempt's program ended, or why none ran.
func (t *Task) End(fence int64, e Ended) error {
	if err := t.checkWorking(fence); err != nil {
		return err
	}
	a := t.Last()
	if a == nil || t.State == Pending || a.Retry != nil {
		return ErrNotOwner
	}
	a.recordEnd(t.ReadAt, e)
	t.addNote("ended", string(e.Exit.Class))
	return nil
}

func (a *Attempt) recordEnd(at time.Time, e Ended) {
	if a.EndedAt.IsZero() {
		a.EndedAt = at
	}
	a.Exit = &Exit{
		Code: e.Exit.Code, Raw: e.Exit.Raw, Signal: e.Exit.Signal, Class: e.Exit.Class,
		Cause: e.Exit.Cause, Confidence: e.Exit.Confidence, Evidence: e.Exit.Evidence,
	}
	if e.Exit.Class != sandbox.ClassOK {
		a.Tail = e.Tail
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
		a.Settled, a.NeverMade, a.GoneAt, a.Gone = true, true, at, "nothing was created"
	}
}

// Expire ends the attempt because a limit was reached. The fence grows, so that no step in
// progress can pass the gate.
func (t *Task) Expire(fence int64, why Reason) error {
	if err := t.checkWorking(fence); err != nil {
		return err
	}
	t.transferTo(t.Owner)
	t.Reason = why
	if a := t.Last(); a != nil && t.State != Pending && a.Retry == nil {
		a.Expired = why
		if a.Exit == nil {
			a.EndedAt = t.ReadAt
		}
	}
	t.addNote("expired", string(why))
	return nil
}

// ScheduleRetry sets the time of the next attempt. The one before must have ended and be
// gone.
func (t *Task) ScheduleRetry(fence int64, r Retry) error {
	if err := t.checkWorking(fence); err != nil {
		return err
	}
	a := t.Last()
	switch {
	case a == nil || a.EndedAt.IsZero() || a.Retry != nil:
		return ErrNotOwner
	case a.GoneAt.IsZero():
		return ErrNotGone
	}
	a.Retry = &r
	t.State, t.Waits, t.NextAt, t.Reason = Assigned, "retry", t.ReadAt.Add(r.Delay), ReasonNone
	t.addNote("retry", r.Why)
	return nil
}

// PassGate is the gate: the one change that decides that a task's work becomes public.
// Stops, limits and takeovers have no effect on the publication after it.
func (t *Task) PassGate(fence int64, p Publish) error {
	if err := t.checkWorking(fence); err != nil {
		return err
	}
	a := t.Last()
	switch {
	case !t.StopAt.IsZero():
		return ErrStopped
	case t.pastDeadline():
		return ErrLate
	case t.State != Running || a == nil || a.Exit == nil || a.Exit.Class != sandbox.ClassOK || a.Expired != ReasonNone:
		return ErrNotOwner
	}
	p.State, p.At = PublishBegun, t.ReadAt
	t.Phase, t.Publish = Publishing, p
	t.addNote("publishing", p.Target)
	return nil
}

// RecordPublishError records why the end of the publication was not seen.
func (t *Task) RecordPublishError(fence int64, why string) error {
	if err := t.checkFence(fence); err != nil {
		return err
	}
	if t.Phase != Publishing {
		return ErrNotOwner
	}
	t.Publish.Message = why
	return nil
}

// EndPublication records the result of the publication, and decides the task.
func (t *Task) EndPublication(fence int64, p Publish, verdict State) error {
	if err := t.checkFence(fence); err != nil {
		return err
	}
	if t.Phase != Publishing {
		return ErrNotOwner
	}
	p.At = t.ReadAt
	t.Publish = p
	t.decideVerdict(verdict, t.Reason)
	t.addNote(string(p.State), p.Commit)
	return nil
}

// Conclude decides the end of a task that publishes nothing, or nothing more.
func (t *Task) Conclude(fence int64, verdict State, why Reason, said string) error {
	if err := t.checkWorking(fence); err != nil {
		return err
	}
	t.Refused = said
	if a := t.Last(); a != nil && a.Retry == nil {
		a.Retry = &Retry{Why: said}
	}
	t.decideVerdict(verdict, why)
	t.addNote("concluded", string(verdict))
	return nil
}

func (t *Task) decideVerdict(verdict State, why Reason) {
	t.State, t.Phase, t.Verdict, t.Reason, t.Waits = Running, Stopping, verdict, why, ""
	t.markRequesterLost()
}

// concludeCompleted concludes a task whose program succeeded and that publishes nothing
// more.
func (t *Task) concludeCompleted(fence int64) error {
	if err := t.Conclude(fence, Completed, ReasonNone, ""); err != nil {
		return err
	}
	if t.Spec.KeepAlive > 0 {
		return t.Keep(fence, t.ReadAt.Add(t.Spec.KeepAlive))
	}
	return nil
}

// failureVerdict is the verdict after a last attempt that did not succeed.
func (t *Task) failureVerdict() State {
	if a := t.Last(); a != nil && a.Expired != ReasonNone {
		return TimedOut
	}
	return Failed
}

// applyPublication is EndPublication with the verdict that follows from the result.
func (t *Task) applyPublication(fence int64, p Publish) error {
	p.Target, p.Fence, p.Base = t.Publish.Target, t.Publish.Fence, t.Publish.Base
	if p.State != PublishDone && t.Publish.Message != "" {
		p.Message += "; before that: " + t.Publish.Message
	}
	verdict := Failed
	if p.State == PublishDone {
		verdict = Completed
	}
	if err := t.EndPublication(fence, p, verdict); err != nil {
		return err
	}
	if a := t.Last(); a.Retry == nil {
		a.Retry = &Retry{}
	}
	switch {
	case verdict == Failed:
		t.Refused = p.Message
	case t.Spec.KeepAlive > 0:
		return t.Keep(fence, t.ReadAt.Add(t.Spec.KeepAlive))
	}
	return nil
}

// RecordSeenPublication records the publication of a task that another process holds: what
// the target holds for ever is a fact, whichever process saw it. The holder cannot write
// the result any more.
func (t *Task) RecordSeenPublication(p Publish) error {
	switch {
	case t.State.Final():
		return ErrFinal
	case t.Phase != Publishing:
		return ErrNotOwner
	}
	t.Fence++
	return t.applyPublication(t.Fence, p)
}
