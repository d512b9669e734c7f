package task

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// PublishLimit is how long publishing may take once the gate is passed. The task's own
// limits do not apply from there on.
const PublishLimit = 10 * time.Minute

const (
	resolveInterval = 2 * time.Second // between two questions of what became of a publication
	collectTries    = 3               // how often collecting the work is tried
)

// publishWork collects the work of a successful attempt, passes the gate and publishes.
func (r *Runner) publishWork(ctx context.Context, t Task) (Task, error) {
	if r.settleOnly {
		return r.handOver(ctx, t)
	}
	var p Publish
	var collected Collected
	err := r.runGuarded(ctx, t, t.attemptLimits(false), func(ctx context.Context) error {
		for tries := 1; ; tries++ {
			var err error
			if p, collected, err = r.collectWork(ctx, t); err == nil || !fault.Retryable(err) || tries == collectTries {
				return err
			}
			if err := poll.Sleep(ctx, resolveInterval); err != nil {
				return err
			}
		}
	})
	switch expired, late := errors.AsType[expiredError](err); {
	case late:
		return r.expireAttempt(ctx, t, expired.why, t.Last().withExit(timeoutExit(expired.why, t.ReadAt)))
	case decidedElsewhere(ctx, err):
		return t, err
	case err != nil:
		return r.concludeUnpublished(ctx, t, err)
	case collected == NothingToPublish:
		return r.changeTask(ctx, t.ID, func(n *Task) error {
			n.Publish = Publish{State: PublishNothing, Target: p.Target, At: n.ReadAt}
			return n.concludeCompleted(t.Fence)
		})
	}
	r.o.CrashPoint("collected")
	return r.passGate(ctx, t, p)
}

// handOver gives a task that is to be published, or is being published, to a process that
// was started to finish it. A sweep does not wait for a remote, because every start of sbx
// waits for the sweep.
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

// collectWork copies the work out of the sandbox. Work that a process which has died
// saved before is used as it is: the sandbox may be gone by now.
func (r *Runner) collectWork(ctx context.Context, t Task) (Publish, Collected, error) {
	base, err := r.o.Publisher.Prepare(ctx, t)
	if err != nil {
		return Publish{}, NothingToPublish, err
	}
	p := Publish{Target: t.Spec.publishTarget(), Base: cmp.Or(base, t.branchBefore()), Fence: "local"}
	if r.o.Publisher.PushesToGit(t) {
		p.Fence = "remote"
	}
	if r.followedAttempt != t.Last().N && r.o.Publisher.Saved(t) {
		return p, WorkToPublish, nil
	}
	run := func(ctx context.Context, c providers.Command) (sandbox.Exit, error) {
		if c.Workdir == "" {
			c.Workdir = t.Spec.Workdir
		}
		return r.o.Sandboxes.Exec(ctx, t.Last().Ref(), c)
	}
	collected, err := r.o.Publisher.Collect(ctx, t, run)
	return p, collected, err
}

// concludeUnpublished concludes a task whose work could not be collected.
func (r *Runner) concludeUnpublished(ctx context.Context, t Task, err error) (Task, error) {
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		n.Publish = Publish{State: PublishRefused, Target: t.Spec.publishTarget(), Message: err.Error(), At: n.ReadAt}
		return n.Conclude(t.Fence, Failed, ReasonNone, "its work could not be published: "+err.Error())
	})
}

func (r *Runner) passGate(ctx context.Context, t Task, p Publish) (Task, error) {
	r.o.CrashPoint("before the gate")
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error { return n.PassGate(t.Fence, p) })
	switch {
	case errors.Is(err, ErrLate):
		return r.expireAttempt(ctx, t, ReasonDeadline, t.Last().withExit(timeoutExit(ReasonDeadline, t.ReadAt)))
	case err != nil:
		return now, err
	}
	t = now
	r.notifyChanged(t)
	if t.pastDeadline() { // the gate was judged before the deadline and written after it: nothing is published yet
		return r.recordPublication(ctx, t, Publish{State: PublishRefused, Message: "its deadline was reached before publishing"})
	}
	r.o.CrashPoint("gate")
	done, err := r.pushWork(ctx, t, PublishLimit)
	r.o.CrashPoint("pushed")
	switch {
	case ctx.Err() != nil:
		return t, ctx.Err()
	case err != nil:
		return r.recordPublishError(ctx, t, err)
	case done.State == PublishBegun:
		return t, nil
	}
	return r.recordPublication(ctx, t, done)
}

// finishPublication brings a publication to its end that this process or one before it
// has begun.
func (r *Runner) finishPublication(ctx context.Context, t Task) (Task, error) {
	if r.settleOnly && r.o.Continue != nil {
		return r.handOver(ctx, t)
	}
	if !r.settleOnly && r.canPushAgain(t) {
		return r.pushAgain(ctx, t)
	}
	return r.resolvePublication(ctx, t)
}

// canPushAgain reports whether work that an earlier process saved may still be pushed: the
// target accepts it once, the time for publishing is not over, and so is not the deadline,
// after which it is unknown whether the gate was written in time.
func (r *Runner) canPushAgain(t Task) bool {
	return !r.pushTried && t.ReadAt.Sub(t.Publish.At) < PublishLimit && !t.pastDeadline() && r.o.Publisher.PushesToGit(t) && r.o.Publisher.Saved(t)
}

// pushAgain pushes saved work. Every result but success is left to resolvePublication.
func (r *Runner) pushAgain(ctx context.Context, t Task) (Task, error) {
	done, err := r.pushWork(ctx, t, PublishLimit-t.ReadAt.Sub(t.Publish.At))
	switch {
	case ctx.Err() != nil:
		return t, ctx.Err()
	case err == nil && done.State == PublishDone:
		return r.recordPublication(ctx, t, done)
	case err == nil:
		err = errors.New(done.Message)
	}
	return r.recordPublishError(ctx, t, err)
}

// pushWork publishes within the limit. The lease is renewed meanwhile.
func (r *Runner) pushWork(ctx context.Context, t Task, limit time.Duration) (done Publish, err error) {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	r.pushTried = true
	r.withLease(ctx, t, func(ctx context.Context) {
		r.forbidOnStop(ctx, t, func() { done, err = r.o.Publisher.Publish(ctx, t) })
	})
	return done, err
}

// forbidOnStop runs publish. When the operator of this process stops the task meanwhile,
// it tries to forbid the publication at the target, as any other process would: whichever
// reaches the target first wins.
func (r *Runner) forbidOnStop(ctx context.Context, t Task, publish func()) {
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
			r.sendMessage("it is not known yet whether publishing was blocked: " + err.Error())
		}
	}()
	publish()
	close(published)
	<-over
}

func (r *Runner) recordPublication(ctx context.Context, t Task, p Publish) (Task, error) {
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.applyPublication(t.Fence, p) })
}

// recordPublishError writes down why the end of a publication was not seen. What became of
// it is for resolvePublication to find out.
func (r *Runner) recordPublishError(ctx context.Context, t Task, err error) (Task, error) {
	r.sendMessage("publishing: " + err.Error())
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.RecordPublishError(t.Fence, err.Error()) })
}

// resolvePublication finds out what became of a publication whose end this process did
// not see.
func (r *Runner) resolvePublication(ctx context.Context, t Task) (Task, error) {
	ctx, stop := context.WithTimeoutCause(ctx, PublishLimit, unverifiedError(t, "it is not known yet whether it was published"))
	defer stop()
	var p Publish
	var err error
	r.withLease(ctx, t, func(ctx context.Context) {
		for told := false; ; told = true {
			p, err = r.o.Publisher.Resolve(ctx, t, r.o.Owner.Who)
			switch {
			case err == nil:
				return
			case ctx.Err() != nil:
				err = context.Cause(ctx)
				return
			case !fault.Retryable(err):
				err = unverifiedError(t, err.Error())
				return
			case !told:
				r.sendMessage("it is not known yet whether it was published: " + err.Error())
			}
			if err = poll.Sleep(ctx, resolveInterval); err != nil {
				return
			}
		}
	})
	if err != nil {
		return t, err
	}
	return r.recordPublication(ctx, t, p)
}

// withLease renews the lease while do runs, which cannot be cut short.
func (r *Runner) withLease(ctx context.Context, t Task, do func(context.Context)) {
	keeper := startBackground(ctx, func(ctx context.Context) {
		for poll.Sleep(ctx, RenewEvery) == nil {
			_, _ = r.o.Ledger.Change(ctx, t.ID, func(n *Task) error { return n.Renew(t.Fence) }) // a lost lease shows in the next change
		}
	})
	defer keeper.cancelAndWait()
	do(ctx)
}

// unverifiedError is what Run returns for a task whose end is not verified.
func unverifiedError(t Task, why string) error {
	return fault.New(fault.KindUnverified, "%w: %s", ErrUnverified, why).At("", "task "+t.ID).
		WithHint("the next sbx command on this machine continues it; `sbx tasks show %s` shows its state", t.ID)
}

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
