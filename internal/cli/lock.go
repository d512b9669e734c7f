package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sbx/internal/fault"
	"sbx/internal/lock"
	"sbx/internal/store"
)

const (
	// bulkLease is the name of the lease under which bulk endings act.
	bulkLease    = "bulk"
	leaseTTL     = time.Minute      // a dead host is waited for no longer
	renewEvery   = 20 * time.Second // so that two renewals may fail
	acquireEvery = time.Second      // while another host holds it
	renewTimeout = renewEvery / 2   // or a store that hangs would have a run act beyond its lease
)

// lockBulkRuns keeps others from acting: those of this machine by the kernel's lock, and
// with a shared store those of other hosts by a lease. The context ends when the
// lease is lost; the run must stop then.
func (a *app) lockBulkRuns(ctx context.Context, h lock.Holder, wait time.Duration) (context.Context, func() error, error) {
	path, err := a.stateFile("cleanup.lock")
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	mine, err := lock.Take(ctx, path, h, wait)
	if err != nil {
		return nil, nil, err
	}
	c, err := a.config()
	if err == nil && c.StoreURL == "" {
		return ctx, mine.Release, nil
	}
	inner, release, err := a.leaseBulkRuns(ctx, h, wait-time.Since(began))
	if err != nil {
		return nil, nil, errors.Join(err, mine.Release())
	}
	return inner, func() error { return errors.Join(release(), mine.Release()) }, nil
}

// runbookRuns is the folder of the runs of runbooks, each with its lock beside it.
const runbookRuns = "runbook-runs"

// lockRunbookRun keeps a second process of this machine from the run that the holder names; the record
// of a run is on this machine alone.
func (a *app) lockRunbookRun(ctx context.Context, h lock.Holder) (func() error, error) {
	path, err := a.stateFile(filepath.Join(runbookRuns, h.Run+".lock"))
	if err != nil {
		return nil, err
	}
	held, err := lock.Take(ctx, path, h, 0)
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

// leaseBulkRuns takes the lease of the shared store and keeps it.
func (a *app) leaseBulkRuns(ctx context.Context, h lock.Holder, wait time.Duration) (context.Context, func() error, error) {
	st, err := a.openStore(true)
	if err != nil {
		return nil, nil, err
	}
	held, err := acquireLease(ctx, st, fmt.Sprintf("%s of %s on %s (pid %d)", h.Run, h.Who, h.Host, h.PID), wait)
	if err != nil {
		return nil, nil, errors.Join(err, st.Close())
	}
	inner, lose := context.WithCancelCause(ctx)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		held = keepLease(inner, st, held, lose, done)
	}()
	return inner, func() error {
		close(done)
		<-ended
		lose(nil)
		after, stop := context.WithTimeout(context.WithoutCancel(ctx), renewEvery)
		defer stop()
		return errors.Join(st.Release(after, held), st.Close())
	}, nil
}

// acquireLease asks until the lease is free or wait is over.
func acquireLease(ctx context.Context, st store.Store, holder string, wait time.Duration) (store.Lease, error) {
	for deadline := time.Now().Add(wait); ; {
		held, err := st.Acquire(ctx, bulkLease, holder, leaseTTL)
		if err != nil && ctx.Err() != nil {
			return held, context.Cause(ctx)
		}
		if fault.KindOf(err) != fault.KindLocked || !time.Now().Before(deadline) {
			return held, err
		}
		select {
		case <-ctx.Done():
			return held, context.Cause(ctx)
		case <-time.After(acquireEvery):
		}
	}
}

// keepLease renews the lease until done. One that cannot be renewed in time is lost, and
// so is the right to act: ctx ends.
func keepLease(ctx context.Context, st store.Store, held store.Lease, lose context.CancelCauseFunc, done <-chan struct{}) store.Lease {
	pace := time.NewTicker(renewEvery)
	defer pace.Stop()
	valid := time.Now().Add(leaseTTL)
	for {
		select {
		case <-done:
			return held
		case <-pace.C:
		}
		asked := time.Now()
		next, err := renewLease(ctx, st, held)
		switch {
		case err == nil:
			held, valid = next, asked.Add(leaseTTL)
		case fault.KindOf(err) == fault.KindLocked || !time.Now().Add(renewEvery).Before(valid):
			lose(fault.New(fault.KindLocked, "the shared lock was lost, so nothing more is done: %w", err).
				WithHint("when the store answers again, continue with `sbx cleanup --resume RUN`"))
			<-done
			return held
		}
	}
}

// renewLease asks once. Its answer is worth nothing when the lease is over by then.
func renewLease(ctx context.Context, st store.Store, held store.Lease) (store.Lease, error) {
	ctx, stop := context.WithTimeout(ctx, renewTimeout)
	defer stop()
	return st.Renew(ctx, held, leaseTTL)
}
