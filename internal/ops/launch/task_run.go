package launch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/task"
)

// RunTask runs a task in this process. The first interrupt stops it, fenced and verified;
// the second one leaves what is still to be ended to the next process.
func RunTask(ctx context.Context, e *ops.Env, watch ops.Reporter, options task.Options, t task.Task, env []string) (task.Task, error) {
	life, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	defer e.OnInterrupts(ctx, func() { watch.Warn("stopping task " + t.ID + "; interrupt again to leave the cleanup to the next sbx") }, leave)()
	now, err := RunControlled(ctx, e, watch, options.Ledger, t, func() (task.Task, error) {
		return task.NewRunner(options, env, ctx.Done()).Run(life, t)
	})
	if ctx.Err() != nil && err != nil && !now.State.Final() {
		now = ops.RevokeOnAbandon(ctx, watch, options, now)
	}
	return now, err
}

// ProgramExit is the exit of a program that sbx ran for the operator, or of the monitoring plugin
// that it is with -o nagios: the process returns its code, and nothing is printed about it.
type ProgramExit struct { //nolint:errname // no error of sbx, but a result
	Code   int
	Plugin bool // a signal does not change the code: monitors know only those of plugins
}

// Error says how the program ended.
func (e ProgramExit) Error() string { return fmt.Sprintf("the program exited with %d", e.Code) }

// TaskVerdict is the error that a task's end is for the process (docs/REFERENCE.md).
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

// beatEvery is the time between two heartbeats to a control plane (S2-10).
const beatEvery = 30 * time.Second

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

// agentEvent is an event of a worker as OmoiOS takes it: POST /api/v1/sandboxes/{id}/events.
type agentEvent struct {
	Type   string   `json:"event_type"` // agent.started, agent.heartbeat, agent.completed, agent.failed
	Data   callback `json:"event_data"`
	Source string   `json:"source"`
}

// reportOf is what a control plane gets of a task: an event where it takes those.
func reportOf(control ops.ControlPlane, t task.Task, now time.Time) any {
	report := CallbackOf(t, now)
	if !control.TakesEvents() {
		return report
	}
	e := agentEvent{"agent.heartbeat", report, "worker"}
	switch {
	case t.State == task.Completed:
		e.Type = "agent.completed"
	case t.State.Final():
		e.Type = "agent.failed"
	case len(t.Attempts) == 0:
		e.Type = "agent.started"
	}
	return e
}

// RunControlled runs a task, reports its progress and its end to its control plane, and notifies
// people of one that failed, unless a person watches. A report that cannot be delivered is a warning.
func RunControlled(ctx context.Context, e *ops.Env, watch ops.Reporter, ledger task.Ledger, t task.Task, run func() (task.Task, error)) (task.Task, error) {
	now, err := runReported(ctx, e, watch, ledger, t, run)
	if !ops.IsAttended(watch) {
		e.NotifyFailedTask(watch, now)
	}
	return now, err
}

// runReported is RunControlled without the people.
func runReported(ctx context.Context, e *ops.Env, watch ops.Reporter, ledger task.Ledger, t task.Task, run func() (task.Task, error)) (task.Task, error) {
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
	if control.TakesEvents() {
		if lost := control.Beat(ctx, reportOf(control, t, e.Now())); lost != nil {
			watch.Warn(lost.Error())
		}
	}
	beats, stop := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	go func() {
		defer close(over)
		sendHeartbeats(beats, e, watch, ledger, control, t.ID)
	}()
	now, err := run()
	stop()
	<-over
	if now.State.Final() {
		if lost := control.Ended(ctx, now.ID, reportOf(control, now, e.Now())); lost != nil {
			watch.Warn(lost.Error())
		}
	}
	return now, err
}

// sendHeartbeats reports to a control plane at intervals that a task goes on. Only the first
// failure is shown.
func sendHeartbeats(ctx context.Context, e *ops.Env, watch ops.Reporter, ledger task.Ledger, control ops.ControlPlane, id string) {
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
			err = control.Beat(ctx, reportOf(control, t, e.Now()))
		}
		if err != nil && ctx.Err() == nil && !told {
			told = true
			watch.Warn(err.Error())
		}
	}
}
