package task

import (
	"context"
	"errors"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// followProgram waits for the end of the attempt's program, and notes it. Output is passed
// on as it comes.
func (r *Runner) followProgram(ctx context.Context, t Task) (Task, error) {
	a := *t.Last()
	p := newOutputTracker(t.ReadAt, r.o.Observer)
	var exit sandbox.Exit
	err := r.guarded(ctx, t, t.attemptLimits(true), func(ctx context.Context) error {
		ctx, cut := context.WithCancelCause(ctx)
		defer cut(nil)
		watch := r.startBackground(ctx, func(ctx context.Context) { r.watchSilence(ctx, t, p, cut) })
		defer watch.cancelAndWait()
		var err error
		if a.Reused {
			if exit, err = r.runInside(ctx, t, p); err != nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return err
		}
		silent := r.startBackground(ctx, func(ctx context.Context) { r.streamOutput(ctx, a.Ref(), p) })
		defer silent.cancelAndWait()
		exit, err = r.awaitExit(ctx, a.Ref(), silent.over)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			return cause
		}
		if err == nil && !silent.waitFor(ctx, drainTimeout) {
			r.sendMessage("the last of its output may be missing: it did not come within " + drainTimeout.String())
		}
		return err
	})
	r.reachPoint("output")
	return r.afterFollowing(ctx, t, a, p, exit, err)
}

// drainTimeout is how long the rest of the output may take after the program's end.
const drainTimeout = 5 * time.Second

// afterFollowing judges how following ended.
func (r *Runner) afterFollowing(ctx context.Context, t Task, a Attempt, p *outputTracker, exit sandbox.Exit, err error) (Task, error) {
	var expired expiredError
	switch {
	case errors.As(err, &expired):
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
	e := p.endReport(exit, r.lastUsage(ctx, a.Ref()))
	if n := r.countMessages(ctx, t, a); n != nil {
		e.Messages = n
	}
	return r.recordExit(ctx, t, e)
}

// timeoutExit is the exit of a program that a limit of ours ended.
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

// awaitExit looks for the program's end, at once when its output is over.
func (r *Runner) awaitExit(ctx context.Context, ref sandbox.Ref, silent <-chan struct{}) (sandbox.Exit, error) {
	absent := 0
	for pace := FirstLook; ; pace = min(2*pace, SlowestLook) {
		exit, err := r.o.Sandboxes.Exit(ctx, ref)
		switch kind := fault.KindOf(err); {
		case err == nil && exit != nil:
			return *exit, nil
		case err == nil:
			absent = 0
		case ctx.Err() != nil:
			return sandbox.Exit{}, ctx.Err()
		case kind == fault.KindGone, kind == fault.KindNotFound:
			if absent++; absent > 1 || kind == fault.KindGone {
				return vanishedExit(err), nil
			}
		case !fault.Retryable(err):
			return sandbox.Exit{}, err
		}
		again := time.NewTimer(pace)
		select {
		case <-ctx.Done():
			again.Stop()
			return sandbox.Exit{}, ctx.Err()
		case <-silent:
			again.Stop()
			silent = nil // once
		case <-again.C:
		}
	}
}

// vanishedExit is the exit of a program whose sandbox was gone under it.
func vanishedExit(err error) sandbox.Exit {
	return sandbox.Exit{
		Class: sandbox.ClassGone, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown,
		Evidence: []sandbox.Evidence{{What: "get", Value: err.Error(), Source: "provider"}},
	}
}

// streamOutput passes the program's output on. A stream that is cut is taken up again
// where it was.
func (r *Runner) streamOutput(ctx context.Context, ref sandbox.Ref, p *outputTracker) {
	for ctx.Err() == nil {
		cut := false
		for line, err := range r.o.Sandboxes.Logs(ctx, ref, providers.LogQuery{Since: p.resumeTime(), Follow: true}) {
			if err != nil {
				cut = fault.Retryable(err)
				break
			}
			p.addLine(line)
		}
		if !cut || !pause(ctx, time.Second) {
			return
		}
	}
}

// replayOutput passes on the output of a program that has ended under another process: whoever
// reads this one's has not seen that. What still runs is followed from its beginning.
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

// replayTimeout bounds how long showing output again may keep a task from its end.
const replayTimeout = 30 * time.Second

// lastUsage is the last sample of an attempt's resources; nothing where it cannot be
// told within a moment.
func (r *Runner) lastUsage(ctx context.Context, ref sandbox.Ref) sandbox.Usage {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	u, err := r.o.Sandboxes.Usage(ctx, ref)
	if err != nil {
		return sandbox.Usage{}
	}
	return u
}

// background is something that goes on beside a wait.
type background struct {
	over chan struct{}
	cut  context.CancelFunc
}

func (r *Runner) startBackground(ctx context.Context, do func(context.Context)) background {
	ctx, cut := context.WithCancel(ctx)
	b := background{over: make(chan struct{}), cut: cut}
	go func() {
		defer close(b.over)
		do(ctx)
	}()
	return b
}

// waitFor gives it some time to end by itself; false = it has not.
func (b background) waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b.over:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// cancelAndWait ends it and waits for that.
func (b background) cancelAndWait() {
	b.cut()
	<-b.over
}
