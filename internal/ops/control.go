package ops

import (
	"context"
	"time"

	"sbx/internal/task"
)

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

// RunControlled runs a task and reports its progress and its end to its control plane. A report
// that cannot be delivered is a warning.
func (e *Env) RunControlled(ctx context.Context, watch Reporter, ledger task.Ledger, t task.Task, run func() (task.Task, error)) (task.Task, error) {
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
