package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/policy"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// sessionVariable names the agent's earlier session to a command that goes on in the
// same sandbox (S2-22).
const sessionVariable = "RESUME_SESSION_ID"

const (
	drainTimeout  = 5 * time.Second  // for the rest of the output after the program's end
	replayTimeout = 30 * time.Second // for showing the output of an earlier process again
	probeAfter    = 10 * time.Second // without an answer of a sandbox, before it is probed, and between two probes
	clearInterval = 5 * time.Second  // between two tries to end the sandbox of the last attempt
)

// followProgram waits for the end of the attempt's program and records it. Output is
// passed on as it comes.
func (r *Runner) followProgram(ctx context.Context, t Task) (Task, error) {
	a := *t.Last()
	p := newOutputTracker(t.ReadAt, r.o.Observer)
	var exit sandbox.Exit
	counts := true // its usage has figures that are recorded, as far as is known
	err := r.runGuarded(ctx, t, t.attemptLimits(true), func(ctx context.Context) error {
		ctx, cut := context.WithCancelCause(ctx)
		defer cut(nil)
		watch := startBackground(ctx, func(ctx context.Context) { r.watchInactivity(ctx, t, p, cut) })
		defer watch.cancelAndWait()
		memory := startBackground(ctx, func(ctx context.Context) { counts = r.watchMemory(ctx, a.Ref()) })
		defer memory.cancelAndWait()
		var err error
		if a.Reused {
			if exit, err = r.runInside(ctx, t, p); err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
		output := startBackground(ctx, func(ctx context.Context) { r.streamOutput(ctx, a.Ref(), p) })
		defer func() { output.cancelAndWait() }()
		exit, err = r.awaitExit(ctx, a.Ref(), p, &output, t.Spec.Limits.Inactivity)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause
		}
		if err == nil && !output.waitFor(ctx, drainTimeout) {
			r.sendMessage("the last output may be missing: it did not arrive within " + drainTimeout.String())
		}
		return err
	})
	r.o.CrashPoint("output")
	switch expired, late := errors.AsType[expiredError](err); {
	case late:
		e := p.endReport(exit, r.lastUsage(ctx, a.Ref()))
		e.Exit = timeoutExit(expired.why, t.ReadAt)
		return r.expireAttempt(ctx, t, expired.why, e)
	case decidedElsewhere(ctx, err):
		return t, err
	case err != nil:
		exit = exitWithoutRun(err)
		exit.Class = sandbox.ClassTransport
	}
	r.followedAttempt = a.N
	var last sandbox.Usage
	if counts || exit.Class != sandbox.ClassOK {
		last = r.lastUsage(ctx, a.Ref())
	}
	e := p.endReport(exit, last)
	if n := r.countMessages(ctx, t, a); n != nil {
		e.Messages = n
	}
	return r.recordExit(ctx, t, e)
}

// awaitExit polls the program's exit, and at once when its output has ended. A sandbox that does not answer is
// probed: a definite answer, that it is broken, is the end of the program. A stream that has ended while the program
// runs is followed again.
func (r *Runner) awaitExit(ctx context.Context, ref sandbox.Ref, p *outputTracker, output *background, inactivity time.Duration) (sandbox.Exit, error) {
	pauses := poll.NewBackoff(FirstLook, SlowestLook)
	probed, refused, outputOver := time.Now(), time.Time{}, output.over
	for {
		exit, err := r.o.Sandboxes.Exit(ctx, ref)
		p.noteAnswer(err)
		switch kind := fault.KindOf(err); {
		case err == nil && exit != nil:
			return *exit, nil
		case err == nil:
			refused = time.Time{}
			if outputOver == nil {
				r.followAgain(ctx, ref, p, output)
			}
		case ctx.Err() != nil:
			return sandbox.Exit{}, ctx.Err()
		case kind == fault.KindGone, kind == fault.KindNotFound:
			if gone, unknown := r.o.Sandboxes.Vanished(ctx, ref); unknown == nil && gone {
				return vanishedExit(err), nil
			}
		case mayBeAnsweredLater(err):
		case kind == fault.KindUnsupported, !refused.IsZero() && time.Since(refused) >= unansweredLimit:
			return sandbox.Exit{}, err
		case refused.IsZero(): // one refusal may be a proxy's
			refused = time.Now()
		}
		if p.unheardTime() > probeAfter && time.Since(probed) > probeAfter {
			if exit, over := r.examineSilent(ctx, ref, p, inactivity, err); over {
				return exit, nil
			}
			probed = time.Now()
		}
		select {
		case <-ctx.Done():
			return sandbox.Exit{}, ctx.Err()
		case <-outputOver:
			outputOver = nil // it hastens one look only
		case <-pauses.After():
		}
	}
}

// followAgain follows a stream again that has ended while its program runs.
func (r *Runner) followAgain(ctx context.Context, ref sandbox.Ref, p *outputTracker, output *background) {
	if output.isOver() && !p.isOutputLost() {
		*output = startBackground(ctx, func(ctx context.Context) { r.streamOutput(ctx, ref, p) })
	}
}

// mayBeAnsweredLater says that an error tells nothing of the program: the same query may be answered again, also
// once a circuit breaker has closed.
func mayBeAnsweredLater(err error) bool {
	return fault.Retryable(err) || errors.Is(err, policy.ErrOpen)
}

// unansweredLimit is how long queries of a program may be refused, and how long a sandbox that its provider shows as
// running may leave every query unanswered, or the inactivity limit where that is longer.
const unansweredLimit = time.Minute

// examineSilent looks at a sandbox that has not answered for a while, and last with said; true = its attempt is over. One
// that says that it is broken is, one that its provider shows as stopped, as after an engine was restarted, and one that does
// not answer for too long while its provider shows it as running.
func (r *Runner) examineSilent(ctx context.Context, ref sandbox.Ref, p *outputTracker, inactivity time.Duration, said error) (sandbox.Exit, bool) {
	health, err := r.o.Sandboxes.Probe(ctx, ref)
	if err == nil && health.Condition == providers.ConditionBroken {
		return brokenExit(health), true
	}
	if err == nil && said != nil && health.Condition == providers.ConditionResumable {
		if gone, unknown := r.o.Sandboxes.Vanished(ctx, ref); unknown == nil && gone { // else it is paused
			return vanishedExit(said), true
		}
	}
	silent := p.unheardTime()
	if silent < max(unansweredLimit, inactivity) || err != nil || health.Verdict == sandbox.True {
		return sandbox.Exit{}, false
	}
	now, err := r.o.Sandboxes.Get(ctx, ref)
	if err != nil || now.State != sandbox.StateRunning {
		return sandbox.Exit{}, false
	}
	return sandbox.Exit{
		Class: sandbox.ClassInfra, Cause: sandbox.CauseUnknown, Confidence: sandbox.Probable,
		Evidence: []sandbox.Evidence{{
			What: "no answer", Value: "for " + sandbox.FormatElapsed(silent) + ", while its provider shows it as " + string(now.State), Source: "sbx",
			At: p.readAt.Add(time.Since(p.began)),
		}},
	}, true
}

// runInside runs the task's command inside a sandbox that existed before. Output and exit
// come over one stream: when it is lost, both are unknown.
func (r *Runner) runInside(ctx context.Context, t Task, p *outputTracker) (sandbox.Exit, error) {
	env := r.programEnvironment(t)
	if t.Spec.SessionID != "" && t.Resumed {
		env = append(env, sessionVariable+"="+t.Spec.SessionID)
	}
	stdout, stderr := &lineWriter{p: p, stream: "stdout"}, &lineWriter{p: p, stream: "stderr"}
	exit, err := r.o.Sandboxes.Exec(ctx, t.Last().Ref(), providers.Command{
		Args: t.Spec.Command, Env: env, Workdir: t.Spec.Workdir, Stdout: stdout, Stderr: stderr,
	})
	stdout.flushRest()
	stderr.flushRest()
	if err == nil && ctx.Err() != nil {
		return exit, ctx.Err()
	}
	return exit, err
}

// streamOutput passes the program's output on. A stream that is cut is resumed where it
// was.
func (r *Runner) streamOutput(ctx context.Context, ref sandbox.Ref, p *outputTracker) {
	for ctx.Err() == nil {
		cut := false
		for line, err := range r.o.Sandboxes.Logs(ctx, ref, providers.LogQuery{Since: p.resumeTime(), Follow: true, Open: true}) {
			if err != nil {
				if cut = mayBeAnsweredLater(err); !cut {
					p.loseOutput()
				}
				break
			}
			p.addLine(line)
		}
		if !cut || poll.Sleep(ctx, time.Second) != nil {
			return
		}
	}
}

// replayOutput shows the output of a program that ended under another process, which the
// observer of this one has not seen. A program that still runs is followed from its
// beginning.
func (r *Runner) replayOutput(ctx context.Context, t Task) {
	a := t.Last()
	if r.o.Observer == nil || a == nil || a.Exit == nil || a.Retry != nil && a.Retry.Again || a.Sandbox == "" || a.Reused || a.StartedAt.IsZero() {
		return
	}
	ctx, stop := context.WithTimeout(ctx, replayTimeout)
	defer stop()
	for line, err := range r.o.Sandboxes.Logs(ctx, a.Ref(), providers.LogQuery{}) {
		if err != nil {
			r.sendMessage("the output of its program cannot be shown again: " + err.Error())
			return
		}
		r.o.Observer.Output(line)
	}
}

// lastUsage is the last sample of an attempt's resources; empty where none is read within
// two seconds.
func (r *Runner) lastUsage(ctx context.Context, ref sandbox.Ref) sandbox.Usage {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	u, err := r.o.Sandboxes.Usage(ctx, ref)
	if err != nil {
		return sandbox.Usage{}
	}
	return u
}

// timeoutExit is the exit of a program that a limit of the task ended.
func timeoutExit(why Reason, at time.Time) sandbox.Exit {
	cause := sandbox.CauseTimeout
	if why == ReasonInactivity {
		cause = sandbox.CauseInactivity
	}
	return sandbox.Exit{
		Class: sandbox.ClassTimeout, Cause: cause, Confidence: sandbox.Certain,
		Evidence: []sandbox.Evidence{{What: "limit", Value: string(why), Source: "sbx", At: at}},
	}
}

// vanishedExit is the exit of a program whose sandbox was gone before it ended.
func vanishedExit(err error) sandbox.Exit {
	return sandbox.Exit{
		Class: sandbox.ClassGone, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown,
		Evidence: []sandbox.Evidence{{What: "get", Value: err.Error(), Source: "provider"}},
	}
}

// brokenExit is the exit of a program whose sandbox says that it does not work any more.
func brokenExit(h providers.Health) sandbox.Exit {
	return sandbox.Exit{Class: sandbox.ClassInfra, Cause: sandbox.CauseUnknown, Confidence: sandbox.Certain, Evidence: h.Evidence}
}

// recordExit writes the attempt's end down and, where nothing is left to publish, the
// task's verdict in the same change.
func (r *Runner) recordExit(ctx context.Context, t Task, e Ended) (Task, error) {
	ok := e.Exit.Class == sandbox.ClassOK
	now, err := r.changeTask(ctx, t.ID, func(n *Task) error {
		if err := n.End(t.Fence, e); err != nil {
			return err
		}
		if ok && !n.Spec.Publishes() {
			return n.concludeCompleted(t.Fence)
		}
		return nil
	})
	if err == nil {
		r.releasePermit(ctx, e.Exit.Class)
	}
	return now, err
}

// expireAttempt ends an attempt whose limit was reached: it is written down first, so that
// the attempt cannot pass the gate, and killed afterwards.
func (r *Runner) expireAttempt(ctx context.Context, t Task, why Reason, e Ended) (Task, error) {
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		if err := n.Expire(t.Fence, why); err != nil {
			return err
		}
		if err := n.End(n.Fence, e); err != nil {
			return err
		}
		if next := n.Next(0); !next.Again {
			return n.Conclude(n.Fence, TimedOut, why, next.Why)
		}
		return nil
	})
}

// decideNext decides what comes after an attempt that has ended: publication, another
// attempt, or the verdict.
func (r *Runner) decideNext(ctx context.Context, t Task) (Task, error) {
	a := t.Last()
	if a.neverEntered() {
		r.releasePermit(ctx, "") // a kept sandbox that is gone shows nothing about new ones
	}
	r.releasePermit(ctx, a.Exit.Class)
	if a.Exit.Class == sandbox.ClassOK {
		if t.Spec.Publishes() {
			return r.publishWork(ctx, t)
		}
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.concludeCompleted(t.Fence) })
	}
	next := t.Next(r.o.Jitter())
	if next.Again && len(t.Spec.EnvNames) > 0 && r.env == nil && t.Key == "" { // with a key the operator can launch it again, with the values
		next.Again, next.Why = false, "its runner has died, and the values of its environment are lost: launch it again"
		t.Reason = ReasonLost
	}
	if !next.Again {
		return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Conclude(t.Fence, n.failureVerdict(), t.Reason, next.Why) })
	}
	if a.GoneAt.IsZero() {
		now, err := r.clearAttempt(ctx, t, *a)
		if err != nil || now.Phase != Working {
			return now, err
		}
		if found := now.Last(); found.Sandbox != a.Sandbox { // its create had made one after all, whose program may have run
			if next = now.Next(r.o.Jitter()); !next.Again {
				return r.changeTask(ctx, t.ID, func(n *Task) error { return n.Conclude(t.Fence, n.failureVerdict(), t.Reason, next.Why) })
			}
		}
	}
	return r.changeTask(ctx, t.ID, func(n *Task) error { return n.ScheduleRetry(t.Fence, next) })
}

// clearAttempt ends the sandbox of an attempt, so that the next one may begin. Where that
// is not seen in time, the task is concluded instead.
func (r *Runner) clearAttempt(ctx context.Context, t Task, a Attempt) (Task, error) {
	limits := append(t.deadlineLimit(), timeLimit{ReasonAttempt, EndPatience})
	now, said := t, ""
	err := r.runGuarded(ctx, t, limits, func(ctx context.Context) error {
		for {
			after, err := r.endAttempt(ctx, t, a.N)
			switch {
			case err == nil:
				now = after
				return nil
			case !errors.Is(err, ErrUnverified):
				return err
			}
			if text := err.Error(); text != said {
				said = text
				r.sendMessage(text)
			}
			if err := poll.Sleep(ctx, clearInterval); err != nil {
				return err
			}
		}
	})
	if _, late := errors.AsType[expiredError](err); !late {
		return now, err
	}
	return r.changeTask(ctx, t.ID, func(n *Task) error {
		return n.Conclude(t.Fence, n.failureVerdict(), n.Reason, "the sandbox of its last attempt was not verified ended in time for another attempt")
	})
}

// releasePermit reports to the breaker how the attempt that it admitted has ended, once.
func (r *Runner) releasePermit(ctx context.Context, class sandbox.Class) {
	if r.permit.Done != nil {
		r.permit.Done(ctx, class)
		r.permit = Permit{}
	}
}

func (r *Runner) reportRunning(ctx context.Context) {
	if r.permit.Started != nil {
		r.permit.Started(ctx)
	}
}
