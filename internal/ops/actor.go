package ops

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"sbx/internal/cleanup"
	"sbx/internal/fleet"
	"sbx/internal/lock"
)

// ActsAs names the acting user and verb, for records that outlive this process.
func (e *Env) ActsAs(verb string) string {
	return fmt.Sprintf("sbx %s (%s, pid %d)", verb, e.Process.User(), e.Process.PID)
}

// The verbs that journals name.
const (
	VerbCleanup   = "cleanup"
	VerbReconcile = "reconcile"
	VerbTerminate = "terminate"
)

// Exclusively runs something while no other run acts, and ends it when that is no longer
// sure.
func (e *Env) Exclusively(ctx context.Context, run string, wait time.Duration, do func(context.Context) error) error {
	a := e.Actor()
	ctx, release, err := e.Lock(ctx, lock.Holder{Run: run, Who: a.Who, Host: a.Host, PID: a.PID, Since: e.Now()}, wait)
	if err != nil {
		return err
	}
	defer func() { _ = release() }() // the end of the process releases it all the same
	return do(ctx)
}

// Actor is the acting user and process, for the journal and the lock.
func (e *Env) Actor() cleanup.Actor {
	return cleanup.Actor{Who: e.Process.User(), Host: e.Process.Host, PID: e.Process.PID, Version: e.Version.Version}
}

// Judging is how every verb of this room judges sandboxes; look asks those themselves
// that their record leaves open.
func (e *Env) Judging(look bool) fleet.Judging {
	return fleet.Judging{Now: e.Now, Thresholds: e.Thresholds, Look: look}
}

// RunID names a run: its time to the millisecond, so that runs sort, and chance, so
// that two of one moment differ.
func (e *Env) RunID() string {
	at := strings.ReplaceAll(e.Now().UTC().Format("20060102T150405.000"), ".", "")
	return "r-" + at + "-" + strings.ToLower(rand.Text()[:6])
}
