package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// TaskObserver receives the progress of one running task and its program's output.
type TaskObserver interface {
	task.Observer
	// Close ends it: a stream that is cut off late reports nothing any more.
	Close()
}

// Launched is what became of a launch.
type Launched struct {
	Task    task.Task
	RanHere bool // by this process, until its end or an interrupt
}

// Launch launches a task, runs it in this process, and says how it ended; TaskVerdict makes
// an exit of that. A key that a task has already joins that task instead. Beside nil
// nothing was launched.
func Launch(ctx context.Context, env *ops.Env, req Request, watch ops.Observer, show TaskObserver) (*Launched, error) {
	return launchOrDetach(ctx, env, req, watch, show, false)
}

// Detached launches a task, and hands it to a process of its own. Joblog is the
// runner's to write.
func Detached(ctx context.Context, env *ops.Env, req Request, watch ops.Observer, joblog string) (*Launched, error) {
	req.joblog = joblog
	return launchOrDetach(ctx, env, req, watch, nil, true)
}

func launchOrDetach(ctx context.Context, env *ops.Env, req Request, watch ops.Observer, show TaskObserver, detach bool) (launched *Launched, err error) {
	prepared, err := req.Prepare(ctx, env, watch)
	if err != nil {
		return nil, err
	}
	l := &launch{env: env, watch: watch, req: req, PreparedTask: prepared}
	err = l.withTasks(ctx, func(ctx context.Context, options task.Options) (err error) {
		if from := req.Resumed; from != nil && !options.CanReach(from.Kept.Ref, from.Kept.Host) {
			return fault.New(fault.KindRefused, "%s runs on the host %s", from.Kept.Ref, from.Kept.Host).WithHint("resume it there")
		}
		launched, err = l.startOrJoin(ctx, options, show, detach)
		return err
	})
	return launched, err
}

// RunOrder runs the task of an order in this process: it is what a background runner does.
func RunOrder(ctx context.Context, env *ops.Env, order ops.RunnerOrder, watch ops.Observer, show TaskObserver) (launched *Launched, err error) {
	l := &launch{env: env, watch: watch, req: Request{BudgetMB: order.BudgetMB}}
	err = env.ReadTasks(func(ledger task.Ledger) error {
		t, err := ledger.Read(ctx, order.Task)
		l.Spec = t.Spec
		return err
	})
	if err != nil {
		return nil, err
	}
	if order.Push != "" {
		if l.Secret, err = env.PushTarget(ctx, order.Push); err != nil {
			return nil, err
		}
	}
	l.Env = order.Env
	err = l.withTasks(ctx, func(ctx context.Context, options task.Options) error {
		t, err := options.Ledger.Change(ctx, order.Task, func(n *task.Task) error {
			return n.Adopt(options.Owner, n.Owner == order.From || n.Owner == options.Owner)
		})
		if err != nil {
			return err
		}
		launched, err = l.runHere(ctx, options, t, show)
		return err
	})
	return launched, err
}

// launch is one task on its way.
type launch struct {
	PreparedTask

	env   *ops.Env
	watch ops.Observer
	req   Request
}

// withTasks opens what the task needs, takes over what dead processes left, and goes on.
func (l *launch) withTasks(ctx context.Context, do func(context.Context, task.Options) error) error {
	places := append([]string{l.Spec.Provider}, l.Spec.Fallback...)
	f, err := l.env.Only(ctx, places...)
	if err != nil {
		return err
	}
	if l.Spec.Sandbox.ID == "" && len(l.Sandbox.Command) > 0 { // else nothing is made, or it was vetted before
		if err := f.Vet(l.Spec.Provider, l.Sandbox); err != nil {
			return err
		}
	}
	atLimit := l.refusedByLimit(ctx, f)
	parts := ops.TaskParts{Fleet: f, Secret: l.Secret, Watch: l.watch, BudgetMB: l.req.BudgetMB}
	return l.env.WithTasks(ctx, parts, func(_ store.Store, options task.Options) error {
		l.env.SweepTasks(ctx, l.watch, options)
		if atLimit != nil && !l.keyIsKnown(ctx, options.Ledger) {
			return atLimit
		}
		return do(ctx, options)
	})
}

// refusedByLimit says why no sandbox may be made for the task now (R111);
// nil where one may, none is made, or they cannot be counted: then the create says why.
func (l *launch) refusedByLimit(ctx context.Context, f *fleet.Fleet) error {
	if l.Spec.Sandbox.ID != "" {
		return nil
	}
	if err := f.Capacity(ctx, l.Spec.Provider); fault.KindOf(err) == fault.KindRefused {
		return err
	}
	return nil
}

// keyIsKnown says that the key is held by a task, so that none is made.
func (l *launch) keyIsKnown(ctx context.Context, ledger task.Ledger) bool {
	if l.req.Key == "" {
		return false
	}
	tasks, err := ledger.List(ctx, store.TaskQuery{})
	return err == nil && slices.ContainsFunc(tasks, func(t task.Task) bool {
		return t.HasKey(l.req.Key) && (!t.State.Final() || !l.releasesKey(&t))
	})
}

// startOrJoin launches the task, or joins the one of the same key.
func (l *launch) startOrJoin(ctx context.Context, options task.Options, show TaskObserver, detach bool) (*Launched, error) {
	fresh := task.New(task.NewID(), l.req.Key, l.Spec, options.Owner, l.env.Now())
	if l.req.Resumed != nil {
		fresh.ResumedFrom = l.req.Resumed.ID
	}
	t, added, err := options.Ledger.AddUnder(ctx, fresh, l.releasesKey)
	if err != nil {
		return nil, err
	}
	mine := added
	if added && t.Key != l.req.Key {
		l.watch.Note("the key " + l.req.Key + " was released: task " + t.ID + " has the key " + t.Key)
	}
	if !added {
		if t.State.Final() {
			l.watch.Note("task " + t.ID + " had ended before; " + l.againAdvice(t))
		}
		unrun := t.EndsUnrun() // it frees the key as soon as it is over
		if t, mine, err = joinTask(ctx, l.watch, options, t, detach && !unrun); err == nil && mine && unrun {
			t, err = RunTask(ctx, l.env, l.watch, options, t, nil)
		}
		if err == nil && unrun && t.NeverRan() {
			return l.startOrJoin(ctx, options, show, detach)
		}
		if err != nil || t.State.Final() {
			return &Launched{Task: t}, err
		}
	}
	if !detach {
		return l.runHere(ctx, options, t, show)
	}
	if t, err = l.handToBackground(ctx, options.Ledger, t, mine); err != nil {
		return nil, err
	}
	return &Launched{Task: t}, nil
}

// releasesKey says that a task of the key that has ended does not hold it: it never ran, or the operator says so.
func (l *launch) releasesKey(t *task.Task) bool {
	return t.NeverRan() || l.req.RetryFailed && (t.State == task.Failed || t.State == task.TimedOut)
}

// againAdvice says how a task that holds its key is launched again.
func (l *launch) againAdvice(t task.Task) string {
	if t.State == task.Failed || t.State == task.TimedOut {
		return "it may have run; --retry-failed launches it again"
	}
	return "use another --key to launch it again"
}

func (l *launch) runHere(ctx context.Context, options task.Options, t task.Task, show TaskObserver) (*Launched, error) {
	options.Observer = show
	now, err := RunTask(ctx, l.env, l.watch, options, t, l.Env)
	show.Close()
	return &Launched{Task: now, RanHere: true}, errors.Join(err, timedOut(ctx, now))
}

// timedOut is the end of the operation's own time, which stops a task as the operator
// would.
func timedOut(ctx context.Context, t task.Task) error {
	if cause := context.Cause(ctx); t.State == task.Stopped && fault.KindOf(cause) == fault.KindTimeout {
		return cause
	}
	return nil
}

// handToBackground gives a task that is mine to a process of its own.
func (l *launch) handToBackground(ctx context.Context, ledger task.Ledger, t task.Task, mine bool) (task.Task, error) {
	if !mine {
		return t, nil
	}
	from := t.Owner
	runner, err := l.env.StartRunner(ctx, ops.RunnerOrder{Task: t.ID, From: from, Env: l.Env, Push: l.req.Push, BudgetMB: l.req.BudgetMB, Joblog: l.req.joblog})
	if err != nil {
		return t, err
	}
	// A recorded owner keeps others from taking the task over.
	return ledger.Change(ctx, t.ID, func(n *task.Task) error { return n.HandOver(from, runner) })
}

// joinTask waits for a task of the same key that another process runs, or takes it over from a
// dead process; mine says that it was taken over. With leave it does not wait.
func joinTask(ctx context.Context, watch ops.Reporter, options task.Options, t task.Task, leave bool) (now task.Task, mine bool, err error) {
	watch.Note("the key " + t.Key + " belongs to task " + t.ID + ": no new task is launched")
	reported := task.Owner{}
	for !t.State.Final() {
		now, err := options.Ledger.Change(ctx, t.ID, func(n *task.Task) error {
			dead := options.Alive != nil && options.Alive(n.Owner) == sandbox.False
			return n.Adopt(options.Owner, dead)
		})
		switch {
		case err == nil:
			watch.Note("its process is gone: this one takes over")
			return now, true, nil
		case !errors.Is(err, task.ErrHeld) && !errors.Is(err, task.ErrFinal):
			return t, false, err
		case leave, errors.Is(err, task.ErrFinal):
			return now, false, nil
		}
		if reported != now.Owner {
			reported = now.Owner
			watch.Note(fmt.Sprintf("task %s is held by %s (pid %d on %s) until %s, and by its renewals: this one waits for its end, and takes over if the renewals stop",
				now.ID, now.Owner.Who, now.Owner.PID, now.Owner.Host, now.LeaseUntil.UTC().Format(time.RFC3339)))
		}
		wait, stop := context.WithTimeout(ctx, task.LeaseFor)
		t, err = options.Ledger.Await(wait, now)
		stop()
		if err != nil && (ctx.Err() != nil || !fault.Interrupted(err)) {
			return t, false, err
		}
	}
	return t, false, nil
}
