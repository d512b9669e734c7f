package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
)

// hangLimit is the time of a supervisor beyond the program's grace before it counts as hung
// and its sandbox is ended without it.
const hangLimit = 3 * time.Second

// Terminate writes a stop request, signals the supervisor and waits for its exit. A
// supervisor that does not react is killed with its sandbox.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	op := "terminate " + id
	r, err := c.loadRecord(ctx, "terminate", id)
	switch {
	case errors.Is(err, record.ErrGarbage) && o.Delete:
		return c.classifyError(op, c.discardUnreadable(ctx, id))
	case err != nil:
		return err
	case r.Newer():
		return c.newerRecord(op, r)
	case r.State.Ended() && !r.MayRun():
		switch alive, err := c.supervisorAlive(r); {
		case err != nil:
			return c.classifyError(op, err)
		case !alive:
			return c.endedAlready(r, o)
		}
	}
	if err := c.checkReachable(r); err != nil {
		return err
	}
	stop := record.Stop{By: o.By, At: c.now().UTC(), GraceSeconds: o.Grace.Seconds(), FullGrace: o.FullGrace}
	if _, err := c.store.AskStop(id, stop); err != nil && !cannotWrite(err) { // a full or read-only disk must not prevent an end
		return c.classifyError(op, err)
	}
	if err := c.stopSupervisor(ctx, r, o.Grace); err != nil && !cannotWrite(err) { // the next read shows the result
		return c.classifyError(op, err)
	}
	if o.Delete {
		return c.classifyError(op, c.store.Remove(id))
	}
	return nil
}

// checkReachable refuses a sandbox that cannot be ended from here: its lock is held by a
// process that this process cannot see, as from inside a sandbox.
func (c *Client) checkReachable(r record.Record) error {
	handle, err := c.openSupervisor(r.ID, r)
	if err == nil {
		handle.Close()
		return nil
	}
	if held, heldErr := c.store.Held(r.ID); heldErr != nil || !held {
		return nil //nolint:nilerr // its supervisor is dead, and the rest can be cleaned up
	}
	return fault.New(fault.KindRefused, "its supervisor runs but is not visible from here").At(c.name, "terminate "+r.ID).
		WithHint("terminate it from outside of this sandbox, container or PID namespace")
}

// endedAlready is the result for an ended sandbox: its record is the evidence that it
// existed.
func (c *Client) endedAlready(r record.Record, o providers.TerminateOptions) error {
	op := "terminate " + r.ID
	if o.Delete {
		return c.classifyError(op, c.store.Remove(r.ID))
	}
	return fault.New(fault.KindGone, "it ended at %s", r.EndedAt.Format(time.RFC3339)).At(c.name, op)
}

// stopSupervisor signals the supervisor and waits for its exit, which is the end of the
// sandbox. After a dead or hung supervisor it finishes the sandbox itself.
func (c *Client) stopSupervisor(ctx context.Context, r record.Record, grace time.Duration) error {
	handle, err := c.openSupervisor(r.ID, r)
	if err != nil {
		return c.finishByAny(ctx, r)
	}
	defer handle.Close()
	if err := handle.Signal(syscall.SIGTERM); err != nil {
		return c.finishByAny(ctx, r)
	}
	limit, cancel := context.WithTimeout(ctx, grace+c.deps.TimeScale.Limit(hangLimit))
	defer cancel()
	if err := handle.Wait(limit); err == nil {
		return c.ensureRecorded(ctx, r)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, err := c.killTree(ctx, r); err != nil {
		return err
	}
	if err := killHandle(ctx, handle); err != nil {
		return err
	}
	return c.finishByAny(ctx, r)
}

// killHandle kills a supervisor; one that has exited meanwhile is no error.
func killHandle(ctx context.Context, handle *identity.Handle) error {
	if err := handle.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, identity.ErrDead) {
		return err
	}
	return handle.Wait(ctx)
}

// ensureRecorded makes sure that the supervisor wrote its last record before it exited.
func (c *Client) ensureRecorded(ctx context.Context, r record.Record) error {
	last, err := c.store.Read(r.ID)
	if err != nil || last.State.Ended() {
		return ignoreGone(err)
	}
	return c.finishByAny(ctx, last)
}

// finishByAny is finishAbandoned for a caller that does not need to know who did it.
func (c *Client) finishByAny(ctx context.Context, r record.Record) error {
	_, err := c.finishAbandoned(ctx, r)
	return err
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// discardUnreadable ends and removes a sandbox with an unreadable record, by its signed lock.
func (c *Client) discardUnreadable(ctx context.Context, id string) error {
	r := record.Record{ID: id}
	if handle, err := c.openSupervisor(id, r); err == nil {
		defer handle.Close()
		if err := killHandle(ctx, handle); err != nil {
			return err
		}
	}
	_, err := c.killTree(ctx, r)
	if err := errors.Join(err, c.dropGroup(ctx, id)); err != nil {
		return err
	}
	if err := c.waitUnlocked(ctx, id); err != nil {
		return err
	}
	return c.store.Remove(id)
}

// waitUnlocked waits until a sandbox's lock is free. A killed supervisor holds it until its
// last thread is gone, which is after it counts as dead, and so does a child of its creator
// between fork and exec.
func (c *Client) waitUnlocked(ctx context.Context, id string) error {
	limit, cancel := context.WithTimeout(ctx, c.deps.TimeScale.Limit(hangLimit))
	defer cancel()
	for {
		if held, err := c.store.Held(id); err != nil || !held {
			return err
		}
		if poll.Sleep(limit, execWindow) != nil {
			return fmt.Errorf("its lock is still held: %w", limit.Err())
		}
	}
}
