package ops

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"sbx/internal/lock"
	"sbx/internal/runs"
	"sbx/internal/sandbox"
)

// ShareLimit is what a slow store may cost a run.
const ShareLimit = 5 * time.Second

// Runs are the records of runs.
func (e *Env) Runs() runs.Records {
	return runs.Records{
		Bulk: e.Journals, Single: e.Endings, Shared: e.Shared, ShareLimit: e.Process.TimeScale.Limit(ShareLimit), Now: e.Now, Program: e.Process.Name(),
	}
}

// EndsOpener begins journals of ends that are no run by a rule.
func (e *Env) EndsOpener(watch Reporter, why runs.Origin) runs.Opener {
	return func(ctx context.Context, targets []sandbox.Sandbox) *runs.Run {
		why.ID = cmp.Or(why.ID, e.RunID())
		return e.Runs().BeginEnds(ctx, why, e.Actor(), targets, watch)
	}
}

// RecordSwept writes down what a sweep has ended, which no verb asked for.
func (e *Env) RecordSwept(ctx context.Context, watch Reporter, swept []sandbox.Ref, reason string) {
	if len(swept) == 0 {
		return
	}
	var targets []sandbox.Sandbox
	var ended []sandbox.Ending
	for _, ref := range swept {
		targets = append(targets, sandbox.Sandbox{Provider: ref.Provider, ID: ref.ID})
		ended = append(ended, sandbox.Ending{Ref: ref, Outcome: sandbox.OutcomeVerified, Reason: reason})
	}
	run := e.EndsOpener(watch, runs.Origin{Verb: runs.VerbSweep, Reason: reason})(ctx, targets)
	for _, one := range ended {
		_ = run.Result(one) // what is lost is warned of
	}
	run.FinishEnds(ctx)
}

// StatusRuns is how many of the newest runs are looked at: two days of one every
// five minutes.
const StatusRuns = 600

// CleanupRuns are the newest cleanup runs on record, the newest first, as far as they can
// be read.
func (e *Env) CleanupRuns(ctx context.Context, limit int) []runs.History {
	list, _ := e.Runs().All(ctx, runs.VerbCleanup, limit) // what cannot be read is not known; `cleanup runs` says why
	return list
}

// ActsAs names the acting user and verb, for records that outlive this process.
func (e *Env) ActsAs(verb string) string {
	return fmt.Sprintf("sbx %s (%s, pid %d)", verb, e.Process.User(), e.Process.PID)
}

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
func (e *Env) Actor() runs.Actor {
	return runs.Actor{Who: e.Process.User(), Host: e.Process.Host, PID: e.Process.PID, Version: e.Version.Version}
}

// RunID names a run: its time to the millisecond, so that runs sort, and chance, so
// that two of one moment differ.
func (e *Env) RunID() string {
	at := strings.ReplaceAll(e.Now().UTC().Format("20060102T150405.000"), ".", "")
	return "r-" + at + "-" + strings.ToLower(rand.Text()[:6])
}
