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

// resolveLook is the pause between two questions of what became of a publication.
const resolveLook = 2 * time.Second

// publish collects the work, passes the gate and makes it public.
func (r *Runner) publish(ctx context.Context, t Task) (Task, error) {
	if r.sweeps {
		return r.handOver(ctx, t)
	}
	var p Publish
	found := false
	err := r.guarded(ctx, t, t.limits(false), func(ctx context.Context) error {
		for tries := 1; ; tries++ {
			var err error
			if p, found, err = r.collect(ctx, t); err == nil || !fault.Retryable(err) || tries == collectTries {
				return err
			}
			if !pause(ctx, resolveLook) {
				return ctx.Err()
			}
		}
	})
	var expired expiredError
	switch {
	case errors.As(err, &expired):
		return r.expire(ctx, t, expired.why, t.Last().again(timedOut(expired.why, t.ReadAt)))
	case ceded(ctx, err):
		return t, err
	case err != nil:
		return r.unpublished(ctx, t, err)
	case !found:
		return r.change(ctx, t.ID, func(n *Task) error {
			n.Publish = Publish{State: PublishNothing, Target: p.Target, At: n.ReadAt}
			return n.completed(t.Fence)
		})
	}
	r.at("collected")
	return r.pass(ctx, t, p)
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
	return r.change(ctx, t.ID, func(n *Task) error { return n.Hand(r.o.Owner, runner) })
}

// collect takes the work out of the sandbox, once. What another process has taken out
// of it before it died is not asked for again: the sandbox may be gone by now.
func (r *Runner) collect(ctx context.Context, t Task) (Publish, bool, error) {
	base, err := r.o.Publisher.Prepare(ctx, t)
	if err != nil {
		return Publish{}, false, err
	}
	p := Publish{Target: t.Spec.target(), Base: base, Fence: "local"}
	if r.o.Publisher.Remote(t) {
		p.Fence = "remote"
	}
	if r.followed != t.Last().N && r.o.Publisher.Saved(t) {
		return p, true, nil
	}
	found, err := r.o.Publisher.Collect(ctx, t, r.exec(t))
	return p, found, err
}

// unpublished decides a task whose work could not even be collected.
func (r *Runner) unpublished(ctx context.Context, t Task, err error) (Task, error) {
	return r.change(ctx, t.ID, func(n *Task) error {
		n.Publish = Publish{State: PublishRefused, Target: t.Spec.target(), Message: err.Error(), At: n.ReadAt}
		return n.Conclude(t.Fence, Failed, ReasonNone, "its work could not be published: "+err.Error())
	})
}

// pass goes through the gate and publishes.
func (r *Runner) pass(ctx context.Context, t Task, p Publish) (Task, error) {
	r.at("before the gate")
	now, err := r.change(ctx, t.ID, func(n *Task) error { return n.Pass(t.Fence, p) })
	switch {
	case errors.Is(err, ErrLate):
		return r.expire(ctx, t, ReasonDeadline, t.Last().again(timedOut(ReasonDeadline, t.ReadAt)))
	case err != nil:
		return now, err
	}
	t = now
	r.changed(t)
	if t.late() { // it was written after the deadline, and judged before: nothing is published yet
		return r.settle(ctx, t, Publish{State: PublishRefused, Message: "its deadline was reached at the gate"})
	}
	r.at("gate")
	done, err := r.push(ctx, t, PublishLimit)
	r.at("pushed")
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	if err != nil { // what became of it is for resolve to find out
		r.say("publishing: " + err.Error())
		return r.change(ctx, t.ID, func(n *Task) error { return n.Doubt(t.Fence, err.Error()) })
	}
	if done.State == PublishBegun {
		return t, nil
	}
	return r.settle(ctx, t, done)
}

// push makes the work public, or tries to until the limit.
func (r *Runner) push(ctx context.Context, t Task, limit time.Duration) (done Publish, err error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	r.pushed = true
	err = r.leased(ctx, t, func(ctx context.Context) error {
		return r.stoppable(ctx, t, func(ctx context.Context) (err error) {
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
	if r.pushed || left <= 0 || t.late() || !r.o.Publisher.Remote(t) || !r.o.Publisher.Saved(t) {
		return t, false, nil
	}
	done, err := r.push(ctx, t, left)
	switch {
	case ctx.Err() != nil:
		return t, true, ctx.Err()
	case err == nil && done.State == PublishDone:
		now, err := r.settle(ctx, t, done)
		return now, true, err
	case err == nil:
		err = errors.New(done.Message)
	}
	r.say("publishing: " + err.Error())
	now, err := r.change(ctx, t.ID, func(n *Task) error { return n.Doubt(t.Fence, err.Error()) })
	return now, true, err
}

// stoppable publishes; the operator's own stop meanwhile reaches for the target, as
// that of anybody else does: who is there first wins.
func (r *Runner) stoppable(ctx context.Context, t Task, do func(context.Context) error) error {
	published, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-published:
			return
		case <-r.stop:
		}
		switch _, err := NewStopper(r.o).Forbid(ctx, t.ID, r.o.Owner.Who); {
		case errors.Is(err, ErrPublishing), errors.Is(err, ErrPublished):
			r.say(err.Error())
		case err != nil:
			r.say("whether it was held back is not known yet: " + err.Error())
		}
	}()
	err := do(ctx)
	close(published)
	<-over
	return err
}

// leased keeps the lease while something goes on that nobody may cut short.
func (r *Runner) leased(ctx context.Context, t Task, do func(context.Context) error) error {
	renewed, cut := context.WithCancel(ctx)
	keeper := r.alongside(renewed, func(ctx context.Context) {
		for pause(ctx, RenewEvery) {
			_, _ = r.o.Ledger.Change(ctx, t.ID, func(n *Task) error { return n.Renew(t.Fence) }) // who has lost it learns so when it settles
		}
	})
	defer keeper.stop()
	defer cut()
	return do(ctx)
}

// settle writes down what became of a publication.
func (r *Runner) settle(ctx context.Context, t Task, p Publish) (Task, error) {
	return r.change(ctx, t.ID, func(n *Task) error { return n.settled(t.Fence, p) })
}

// settled is Settle with the verdict that follows from what was seen.
func (t *Task) settled(fence int64, p Publish) error {
	p.Target, p.Fence, p.Base = t.Publish.Target, t.Publish.Fence, t.Publish.Base
	if p.State != PublishDone && t.Publish.Message != "" {
		p.Message += "; before that: " + t.Publish.Message
	}
	verdict := Failed
	if p.State == PublishDone {
		verdict = Completed
	}
	if err := t.Settle(fence, p, verdict); err != nil {
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

// Witnessed settles the publication of a task that somebody else holds: what its
// target was seen to hold for ever counts, whoever saw it. Who holds the task has
// nothing to write about it any more.
func (t *Task) Witnessed(p Publish) error {
	switch {
	case t.State.Over():
		return ErrOver
	case t.Phase != Publishing:
		return ErrMoved
	}
	t.Fence++
	return t.settled(t.Fence, p)
}

// settleBegun ends a publication that was begun, by this process or one before it.
func (r *Runner) settleBegun(ctx context.Context, t Task) (Task, error) {
	switch {
	case r.sweeps && r.o.Continue != nil:
		return r.handOver(ctx, t)
	case !r.sweeps:
		if now, did, err := r.pushSaved(ctx, t); did {
			return now, err
		}
	}
	return r.resolve(ctx, t)
}

// resolve finds out what became of a publication whose end this process did not see.
func (r *Runner) resolve(ctx context.Context, t Task) (Task, error) {
	ctx, stop := context.WithTimeoutCause(ctx, PublishLimit, unverified(t, "nobody can tell yet whether it was published"))
	defer stop()
	var p Publish
	err := r.leased(ctx, t, func(ctx context.Context) error {
		for told := false; ; told = true {
			var err error
			if p, err = r.o.Publisher.Resolve(ctx, t, r.o.Owner.Who); err == nil {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !fault.Retryable(err) {
				return unverified(t, err.Error())
			}
			if !told {
				r.say("it is not known yet whether it was published: " + err.Error())
			}
			if !pause(ctx, resolveLook) {
				return context.Cause(ctx)
			}
		}
	})
	if err != nil {
		return t, err
	}
	return r.settle(ctx, t, p)
}

// unverified is what Run returns for a task whose end is not made certain.
func unverified(t Task, why string) error {
	return fault.New(fault.KindUnverified, "%w: %s", ErrUnverified, why).At("", "task "+t.ID).
		WithHint("the next sbx on this machine goes on with it; `sbx tasks show %s` says how it stands", t.ID)
}

// exec runs commands in the task's sandbox.
func (r *Runner) exec(t Task) Exec {
	ref, workdir := t.Last().Ref(), t.Spec.Workdir
	return func(ctx context.Context, c providers.Command) (sandbox.Exit, error) {
		if c.Workdir == "" {
			c.Workdir = workdir
		}
		return r.o.Sandboxes.Exec(ctx, ref, c)
	}
}

// target is where the work is published, in words.
func (s Spec) target() string {
	if s.Push != "" {
		return s.Push
	}
	return s.Publish
}

// again is what was known of an attempt, with another exit.
func (a *Attempt) again(exit sandbox.Exit) Ended {
	return Ended{Exit: exit, OutputAt: a.OutputAt, Messages: a.Messages, Session: a.Session, Extended: a.Extended}
}
