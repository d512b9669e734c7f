package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/publish"
	"sbx/internal/safety"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/task"
)

// RunTask runs a task in this process. The first interrupt stops it, fenced and verified;
// the second one leaves what is still to be ended to the next process.
func (e *Env) RunTask(ctx context.Context, watch Reporter, options task.Options, t task.Task, env []string) (task.Task, error) {
	life, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer e.OnInterrupts(ctx, func() { watch.Warn("stopping task " + t.ID + "; interrupt again to leave the cleanup to the next sbx") }, leave)()
	now, err := e.RunControlled(ctx, watch, options.Ledger, t, func() (task.Task, error) {
		return task.NewRunner(options, env, ctx.Done()).Run(life, t)
	})
	if ctx.Err() != nil && err != nil && !now.State.Final() {
		now = revokeOnAbandon(ctx, watch, options, now)
	}
	return now, err
}

// TaskParts are what tasks are joined with.
type TaskParts struct {
	Fleet    *fleet.Fleet
	Store    store.Store
	Secret   publish.Target // the push target with its credentials; zero = none
	BudgetMB int64          // what all tasks of a budget may hold together; 0 = no bound
	Notice   func(text string)
	// Protected says why the operator keeps a sandbox; WithTasks sets it.
	Protected func(sandbox.Sandbox) string
}

// WithTasks opens the store and joins it with a fleet. Launching and stopping fail
// closed: without a store nothing of it is done.
func (e *Env) WithTasks(ctx context.Context, parts TaskParts, do func(store.Store, task.Options) error) error {
	if err := e.mayChange(); err != nil {
		return err
	}
	st, err := e.Store(true)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // what had to be kept was kept by its own call
	c, err := e.Config()
	if err != nil {
		return err
	}
	parts.Store, parts.Protected = st, func(s sandbox.Sandbox) string { return e.Protection(c, nil).Keeps(s, safety.ByWord) }
	options, err := e.Tasks(ctx, parts)
	if err != nil {
		return err
	}
	return do(st, options)
}

// SweepTasks settles what dead processes left and ends what was kept for long enough,
// for a moment at most.
func (e *Env) SweepTasks(ctx context.Context, watch Reporter, options task.Options) {
	options.Continue = e.startBackgroundRunner
	adopted, err := task.Sweep(ctx, options)
	for _, a := range adopted {
		e.notifyFailedTask(watch, a.Task) // its own process told nobody
		if a.Task.Sweeps > 1 && !a.Task.State.Final() {
			continue // an earlier sweep has said it
		}
		watch.Note(fmt.Sprintf("task %s belonged to a dead process: it is %s now", a.Task.ID, WithDetail(string(a.Task.State), string(a.Task.Phase))))
		if fault.KindOf(a.Err) == fault.KindLauncher {
			watch.Warn(a.Err.Error())
		}
	}
	if err != nil && ctx.Err() == nil {
		watch.Warn("tasks of dead processes could not be read: " + err.Error())
	}
	ended, err := task.EndKept(ctx, options)
	for _, ref := range ended {
		watch.Note(ref.String() + " was kept until its time limit: it is gone now")
	}
	if err != nil && ctx.Err() == nil {
		watch.Warn("kept sandboxes could not be read: " + err.Error())
	}
}

// ProgramExit is the exit of a program that sbx ran for the operator, or of the monitoring plugin
// that it is with -o nagios: the process returns its code, and nothing is printed about it.
type ProgramExit struct { //nolint:errname // no error of sbx, but a result
	Code   int
	Plugin bool // a signal does not change the code: monitors know only those of plugins
}

// Error says how the program ended.
func (e ProgramExit) Error() string { return fmt.Sprintf("the program exited with %d", e.Code) }

// TaskVerdict is the error that a task's end is for the process (CLI.md, exit codes).
func TaskVerdict(t task.Task, err error) error {
	if err != nil && (!errors.Is(err, task.ErrUnverified) || t.Verdict == task.Completed || t.Verdict == "") {
		return err
	}
	over := t
	if !over.State.Final() {
		over.State = t.Verdict
	}
	op := "task " + t.ID
	_, failed := over.ProgramFailure()
	switch code := over.ExitCode(); {
	case code == 0:
		return nil
	case over.State == task.TimedOut:
		return fault.New(fault.KindTimeout, "it reached its %s limit", t.Reason).At("", op).WithHint("`sbx tasks show %s` shows the evidence", t.ID)
	case over.State == task.Stopped:
		return fault.New(fault.KindCanceled, "stopped by %s", t.StopBy).At("", op)
	case code == task.CodeNotRun && !failed:
		e := fault.New(fault.KindLauncher, "%s", notRunWords(t)).At("", op).WithHint("`sbx tasks show %s` shows the evidence", t.ID)
		a := over.Last()
		e.Final = a != nil && a.Fault != "" && !fault.Kind(a.Fault).Row().Retryable // a wrong key stays wrong
		return e
	}
	if a := over.Last(); a != nil && a.Fault != "" { // sbx says it: no program was there to
		return fault.New(fault.Kind(a.Fault), "%s", notRunWords(t)).At("", op)
	}
	return ProgramExit{Code: over.ExitCode()}
}

func notRunWords(t task.Task) string {
	why := t.Refused
	if a := t.Last(); a != nil && a.Exit != nil {
		for _, e := range a.Exit.Evidence {
			if e.What == "create" {
				return e.Value
			}
		}
	}
	if why == "" {
		why = "it did not run"
	}
	return why
}

// RunnerOrder is the order to a background runner, sent through a pipe: it holds values of the
// environment, so it is never stored.
type RunnerOrder struct {
	Task     string     `json:"task"`
	From     task.Owner `json:"from"` // who gives it
	Env      []string   `json:"env"`
	Push     string     `json:"push"` // with its credentials
	BudgetMB int64      `json:"budget_mb"`
	Joblog   string     `json:"joblog"`
}

// RunnerVerb is the hidden verb of a background runner.
const RunnerVerb = "run-task"

// StartRunner starts a background runner.
func (e *Env) StartRunner(ctx context.Context, o RunnerOrder) (task.Owner, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return task.Owner{}, err
	}
	runner, err := e.Background(ctx, o.Task, raw)
	if err != nil {
		return runner, fault.New(fault.KindLauncher, "the background runner of task %s could not be started: %w", o.Task, err).
			WithHint("`sbx stop %s` ends the task", o.Task)
	}
	return runner, nil
}

// startBackgroundRunner starts a background runner for a task that a sweep holds.
func (e *Env) startBackgroundRunner(ctx context.Context, t task.Task) (task.Owner, error) {
	return e.StartRunner(ctx, RunnerOrder{Task: t.ID, From: t.Owner})
}

// beatEvery is the time between two heartbeats to a control plane (S2-10).
const beatEvery = 30 * time.Second

// ControlPlane receives the progress of tasks.
type ControlPlane interface {
	// Ended reports how a task ended, within ten seconds; a second report with the same key
	// changes nothing.
	Ended(ctx context.Context, key string, report any) error
	// Beat says once that something goes on.
	Beat(ctx context.Context, beat any) error
	Close()
}

// callbackSchema is the form of what a control plane gets.
const callbackSchema = "sbx.callback/v1"

// callback is the report of a task to a control plane. Output, evidence and values of the
// environment are not in it.
type callback struct {
	Schema   string            `json:"schema"`
	Event    string            `json:"event"` // "heartbeat", "completed"
	Task     string            `json:"task"`
	Key      string            `json:"key,omitempty"`
	State    task.State        `json:"state"`
	Phase    task.Phase        `json:"phase,omitempty"`
	Reason   task.Reason       `json:"stop_reason,omitempty"`
	Why      string            `json:"why,omitempty"`
	ExitCode *int              `json:"exit_code"` // of `sbx run`; null while it goes on
	Attempts []callbackAttempt `json:"attempts"`
	Publish  *CallbackPublish  `json:"publish"`
	Verified bool              `json:"terminated_verified"`
	At       time.Time         `json:"at"`
}

type callbackAttempt struct {
	N        int    `json:"n"`
	Sandbox  string `json:"sandbox,omitempty"`
	Class    string `json:"class,omitempty"`
	Cause    string `json:"cause,omitempty"`
	ExitCode *int   `json:"exit_code"`
}

// CallbackPublish is how far the publication of a task is.
type CallbackPublish struct {
	State  task.PublishState `json:"state"`
	Target string            `json:"target"`
	Commit string            `json:"commit,omitempty"`
}

// CallbackOf is a task as a control plane sees it.
func CallbackOf(t task.Task, now time.Time) callback {
	c := callback{
		Schema: callbackSchema, Event: "heartbeat", Task: t.ID, Key: t.Key, State: t.State, Phase: t.Phase, Reason: t.Reason, Why: t.Refused,
		Attempts: []callbackAttempt{}, Verified: !t.VerifiedAt.IsZero(), At: now.UTC(),
	}
	for _, a := range t.Attempts {
		one := callbackAttempt{N: a.N}
		if a.Sandbox != "" {
			one.Sandbox = a.Ref().String()
		}
		if a.Exit != nil {
			one.Class, one.Cause, one.ExitCode = string(a.Exit.Class), string(a.Exit.Cause), a.Exit.Code
		}
		c.Attempts = append(c.Attempts, one)
	}
	if t.Publish.State != task.PublishNone {
		c.Publish = &CallbackPublish{t.Publish.State, t.Publish.Target, t.Publish.Commit}
	}
	if t.State.Final() {
		code := t.ExitCode()
		c.Event, c.ExitCode = "completed", &code
	}
	return c
}

// RunControlled runs a task, reports its progress and its end to its control plane, and notifies
// people of one that failed, unless a person watches. A report that cannot be delivered is a warning.
func (e *Env) RunControlled(ctx context.Context, watch Reporter, ledger task.Ledger, t task.Task, run func() (task.Task, error)) (task.Task, error) {
	now, err := e.runReported(ctx, watch, ledger, t, run)
	if !isAttended(watch) {
		e.notifyFailedTask(watch, now)
	}
	return now, err
}

// runReported is RunControlled without the people.
func (e *Env) runReported(ctx context.Context, watch Reporter, ledger task.Ledger, t task.Task, run func() (task.Task, error)) (task.Task, error) {
	if !t.Spec.Callback {
		return run()
	}
	control, err := e.Control()
	if err != nil {
		watch.Warn(err.Error())
	}
	if control == nil {
		return run()
	}
	defer control.Close()
	beats, stop := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		e.sendHeartbeats(beats, watch, ledger, control, t.ID)
	}()
	now, err := run()
	stop()
	<-over
	if now.State.Final() {
		if lost := control.Ended(ctx, now.ID, CallbackOf(now, e.Now())); lost != nil {
			watch.Warn(lost.Error())
		}
	}
	return now, err
}

// sendHeartbeats reports to a control plane at intervals that a task goes on. Only the first
// failure is shown.
func (e *Env) sendHeartbeats(ctx context.Context, watch Reporter, ledger task.Ledger, control ControlPlane, id string) {
	every := time.NewTicker(beatEvery)
	defer every.Stop()
	told := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		t, err := ledger.Read(ctx, id)
		if err == nil {
			err = control.Beat(ctx, CallbackOf(t, e.Now()))
		}
		if err != nil && ctx.Err() == nil && !told {
			told = true
			watch.Warn(err.Error())
		}
	}
}
