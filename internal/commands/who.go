package commands

import (
	"context"
	"fmt"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/lock"
	"sbx/internal/output"
	"sbx/internal/sandbox"
)

// by says who asks, for records that outlive this process.
func (e *Env) by(verb string) string {
	return fmt.Sprintf("sbx %s (%s, pid %d)", verb, e.Process.User(), e.Process.PID)
}

// The verbs that journals name.
const (
	verbCleanup   = "cleanup"
	verbReconcile = "reconcile"
	verbTerminate = "terminate"
)

// alone runs something while no other run acts, and ends it when that is no longer
// sure.
func (e *Env) alone(ctx context.Context, run string, wait time.Duration, do func(context.Context) error) error {
	a := e.actor()
	ctx, release, err := e.Lock(ctx, lock.Holder{Run: run, Who: a.Who, Host: a.Host, PID: a.PID, Since: e.now()}, wait)
	if err != nil {
		return err
	}
	defer func() { _ = release() }() // the end of the process releases it all the same
	return do(ctx)
}

// actor is who runs, for the journal and the lock.
func (e *Env) actor() cleanup.Actor {
	return cleanup.Actor{Who: e.Process.User(), Host: e.Process.Host, PID: e.Process.PID, Version: e.Version.Version}
}

// evidence is the JSON form of what backs a claim.
func evidence(list []sandbox.Evidence) []any {
	out := make([]any, 0, len(list))
	for _, e := range list {
		out = append(out, output.Fields{
			{Key: "what", Value: e.What}, {Key: "value", Value: e.Value}, {Key: "source", Value: e.Source}, {Key: "at", Value: output.Time(e.At)},
		})
	}
	return out
}
