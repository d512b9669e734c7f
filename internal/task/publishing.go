package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// PublishLimit is how long making the work public may take once the gate is passed:
// from there on the task's own limits hold no more.
const PublishLimit = 10 * time.Minute

// resolveInterval is the pause between two questions of what became of a publication.
const resolveInterval = 2 * time.Second

// publishWork collects the work, passes the gate and makes it public.
func (r *Runner) publishWork(ctx context.Context, t Task) (Task, error) {
	if r.settleOnly {
		return r.handOver(ctx, t)
	}
	var p Publish
	found := false
	err := r.guarded(ctx, t, t.attemptLimits(false), func(ctx context.Context) error {
		for tries := 1; ; tries++ {
			var err error
			if p, found, err = r.collectWork(ctx, t); err == nil || !fault.Retryable(err) || tries == collectTries {
				return err
			}
			if !pause(ctx, resolveInterval) {
				return ctx.Err()
			}
		}
	})
	var expired expiredError
	switch {
	case errors.As(err, &expired):
		return r.expireAttempt(ctx, t, expired.why, t.Last().withExit(timeoutExit(expired.why, t.ReadAt)))
	case decidedElsewhere(ctx, err):
		return t, err
	case err != nil:
		return r.concludeUnpublished(ctx, t, err)
	case !found:
		return r.changeTask(ctx, t.ID, func(n *Task) error {
			n.Publish = Publish{State: PublishNothing, Target: p.Target, At: n.ReadAt}
			return n.concludeCompleted(t.Fence)
		})
	}
	r.reachPoint("collected")
	return r.passGate(ctx, t, p)
}

// collectTries is how often the work is asked for before it is given up.
const collectTries = 3

// handOver gives a task that is to be published, or is being published, to a process
// that stays: how long a remote takes is no matter for a sweep, which every start of
// sbx waits for.
func (r *Runner) handOver(ctx context.Context, t Task) (Task, error) {
	if r.o.Continue == nil {
		return t, errSweeping
	}
	runner, err := r.o.Continue(ctx, t)
	if err != nil {
		return t, err
	}
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.HandOver(r.o.Owner, runner) })
}

// collectWork takes the work out of the sandbox, once. What another process has taken out
// of it before it died is not asked for again: the sandbox may be gone by now.
func (r *Runner) collectWork(ctx context.Context, t Task) (Publish, bool, error) {
	base, err := r.o.Publisher.Prepare(ctx, t)
	if err != nil {
		return Publish{}, false, err
	}
	p := Publish{Target: t.Spec.publishTarget(), Base: base, Fence: "local"}
	if r.o.Publisher.Remote(t) {
		p.Fence = "remote"
	}
	if r.followedAttempt != t.Last().N && r.o.Publisher.Saved(t) {
		return p, true, nil
	}
	found, err := r.o.Publisher.Collect(ctx, t, r.sandboxExec(t))
	return p, found, err
}

// concludeUnpublished decides a task whose work could not even be collected.
func (r *Runner) concludeUnpublished(ctx context.Context, t Task, err error) (Task, error) {
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		n.Publish = Publish{State: PublishRefused, Target: t.Spec.publishTarget(), Message: err.Error(), At: n.ReadAt}
		return n.Conclude(t.Fence, Failed, ReasonNone, "its work could not be published: "+err.Error())
	})
}

// passGate goes through the gate and publishes.
func (r *Runner) passGate(ctx context.Context, t Task, p Publish) (Task, error) {
	r.reachPoint("before the gate")
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.PassGate(t.Fence, p) })
	switch {
	case errors.Is(err, ErrLate):
		return r.expireAttempt(ctx, t, ReasonDeadline, t.Last().withExit(timeoutExit(ReasonDeadline, t.ReadAt)))
	case err != nil:
		return now, err
	}
	t = now
	r.notifyChanged(t)
	if t.pastDeadline() { // it was written after the deadline, and judged before: nothing is published yet
		return r.recordPublication(ctx, t, Publish{State: PublishRefused, Message: "its deadline was reached at the gate"})
	}
	r.reachPoint("gate")
	done, err := r.pushWork(ctx, t, PublishLimit)
	r.reachPoint("pushed")
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	if err != nil { // what became of it is for resolve to find out
		r.sendMessage("publishing: " + err.Error())
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.RecordPublishError(t.Fence, err.Error()) })
	}
	if done.State == PublishBegun {
		return t, nil
	}
	return r.recordPublication(ctx, t, done)
}

// pushWork makes the work public, or tries to until the limit.
func (r *Runner) pushWork(ctx context.Context, t Task, limit time.Duration) (done Publish, err error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	r.pushTried = true
	err = r.withLease(ctx, t, func(ctx context.Context) error {
		return r.publishUnlessStopped(ctx, t, func(ctx context.Context) (err error) {
			done, err = r.o.Publisher.Publish(ctx, t)
			return err
		})
	})
	return done, err
}

// pushSaved publishes what the process before this one has saved and could not push, or
// was not seen to push: the target takes it once. What was not published in the time for
// that, and what another than the target's word is known of, is for resolve. After the
// deadline nobody can tell any more whether the gate was written before it.
func (r *Runner) pushSaved(ctx context.Context, t Task) (Task, bool, error) {
	left := PublishLimit - t.ReadAt.Sub(t.Publish.At)
	if r.pushTried || left <= 0 || t.pastDeadline() || !r.o.Publisher.Remote(t) || !r.o.Publisher.Saved(t) {
		return t, false, nil
	}
	done, err := r.pushWork(ctx, t, left)
	switch {
	case ctx.Err() != nil:
		return t, true, ctx.Err()
	case err == nil && done.State == PublishDone:
		now, err := r.recordPublication(ctx, t, done)
		return now, true, err
	case err == nil:
		err = errors.New(done.Message)
	}
	r.sendMessage("publishing: " + err.Error())
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.RecordPublishError(t.Fence, err.Error()) })
	return now, true, err
}

// publishUnlessStopped publishes; the operator's own stop meanwhile reaches for the target, as
// that of anybody else does: who is there first wins.
func (r *Runner) publishUnlessStopped(ctx context.Context, t Task, do func(context.Context) error) error {
	published, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-published:
			return
		case <-r.stop:
		}
		switch _, err := NewStopper(r.o).ForbidPublication(ctx, t.ID, r.o.Owner.Who); {
		case errors.Is(err, ErrPublishing), errors.Is(err, ErrPublished):
			r.sendMessage(err.Error())
		case err != nil:
			r.sendMessage("whether it was held back is not known yet: " + err.Error())
		}
	}()
	err := do(ctx)
	close(published)
	<-over
	return err
}

// withLease keeps the lease while something goes on that nobody may cut short.
func (r *Runner) withLease(ctx context.Context, t Task, do func(context.Context) error) error {
	renewed, cut := context.WithCancel(ctx)
	keeper := r.startBackground(renewed, func(ctx context.Context) {
		for pause(ctx, RenewEvery) {
			_, _ = r.o.Ledger.Change(ctx, t.ID, func(n *Task) error { return n.Renew(t.Fence) }) // who has lost it learns so when it settles
		}
	})
	defer keeper.cancelAndWait()
	defer cut()
	return do(ctx)
}

// recordPublication writes down what became of a publication.
func (r *Runner) recordPublication(ctx context.Context, t Task, p Publish) (Task, error) {
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.applyPublication(t.Fence, p) })
}

// applyPublication is Settle with the verdict that follows from what was seen.
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

// RecordSeenPublication settles the publication of a task that somebody else holds: what its
// target was seen to hold for ever counts, whoever saw it. Who holds the task has
// nothing to write about it any more.
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

// finishPublication ends a publication that was begun, by this process or one before it.
func (r *Runner) finishPublication(ctx context.Context, t Task) (Task, error) {
	switch {
	case r.settleOnly && r.o.Continue != nil:
		return r.handOver(ctx, t)
	case !r.settleOnly:
		if now, did, err := r.pushSaved(ctx, t); did {
			return now, err
		}
	}
	return r.resolvePublication(ctx, t)
}

// resolvePublication finds out what became of a publication whose end this process did not see.
func (r *Runner) resolvePublication(ctx context.Context, t Task) (Task, error) {
	ctx, stop := context.WithTimeoutCause(ctx, PublishLimit, unverifiedError(t, "nobody can tell yet whether it was published"))
	defer stop()
	var p Publish
	err := r.withLease(ctx, t, func(ctx context.Context) error {
		for told := false; ; told = true {
			var err error
			if p, err = r.o.Publisher.Resolve(ctx, t, r.o.Owner.Who); err == nil {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !fault.Retryable(err) {
				return unverifiedError(t, err.Error())
			}
			if !told {
				r.sendMessage("it is not known yet whether it was published: " + err.Error())
			}
			if !pause(ctx, resolveInterval) {
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return t, err
	}
	return r.recordPublication(ctx, t, p)
}

// unverifiedError is what Run returns for a task whose end is not made certain.
func unverifiedError(t Task, why string) error {
	return fault.New(fault.KindUnverified, "%w: %s", ErrUnverified, why).At("", "task "+t.ID).
		WithHint("the next sbx on this machine goes on with it; `sbx tasks show %s` says how it stands", t.ID)
}

// sandboxExec runs commands in the task's sandbox.
func (r *Runner) sandboxExec(t Task) Exec {
	ref, workdir := t.Last().Ref(), t.Spec.Workdir
	return func(ctx context.Context, c providers.Command) (sandbox.Exit, error) {
		if c.Workdir == "" {
			c.Workdir = workdir
		}
		return r.o.Sandboxes.Exec(ctx, ref, c)
	}
}

// publishTarget is where the work is published, in words.
func (s Spec) publishTarget() string {
	if s.Push != "" {
		return s.Push
	}
	return s.Publish
}

// withExit is what was known of an attempt, with another exit.
func (a *Attempt) withExit(exit sandbox.Exit) Ended {
	return Ended{Exit: exit, OutputAt: a.OutputAt, Messages: a.Messages, Session: a.Session, Extended: a.Extended}
}
