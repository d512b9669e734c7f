package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
)

// patience is what a supervisor gets beyond the program's grace before it
// counts as hung and its sandbox is ended over its head.
const patience = 3 * time.Second

// Terminate leaves a request, wakes the supervisor and waits for it to go. A
// supervisor that does not react is ended with its sandbox.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	op := "terminate " + id
	r, err := c.load(ctx, "terminate", id)
	switch {
	case errors.Is(err, record.ErrGarbage) && o.Delete:
		return c.discard(ctx, id)
	case err != nil:
		return err
	case r.Newer():
		return fault.New(fault.KindRefused, "its record was written by a newer sbx (%s)", r.Version).At(c.name, op).
			WithHint("use that version, or a newer one")
	case r.State.Ended() && !r.MayRun():
		switch alive, err := c.alive(r); {
		case err != nil:
			return c.trouble(op, err)
		case !alive:
			return c.endedAlready(r, o)
		}
	}
	if err := c.reachable(r); err != nil {
		return err
	}
	stop := record.Stop{By: o.By, At: c.now().UTC(), GraceSeconds: o.Grace.Seconds(), Patient: o.Patient}
	if _, err := c.store.AskStop(id, stop); err != nil && !unwritable(err) { // a full or read-only disk keeps nobody alive
		return c.trouble(op, err)
	}
	if err := c.persuade(ctx, r, o.Grace); err != nil && !unwritable(err) { // what happened is seen at the next read
		return c.trouble(op, err)
	}
	if o.Delete {
		return c.trouble(op, c.store.Remove(id))
	}
	return nil
}

// reachable refuses what cannot be ended from here: somebody holds the lock, and
// it is nobody whom this process can see, as from inside a sandbox.
func (c *Client) reachable(r record.Record) error {
	handle, err := c.supervisorOf(r.ID, r)
	if err == nil {
		handle.Close()
		return nil
	}
	if held, heldErr := c.store.Held(r.ID); heldErr != nil || !held {
		return nil //nolint:nilerr // its supervisor is dead, and what it left can be buried
	}
	return fault.New(fault.KindRefused, "its supervisor lives and cannot be seen from here").At(c.name, "terminate "+r.ID).
		WithHint("end it from outside of this sandbox, container or PID namespace")
}

// endedAlready answers for what needs no ending: its record is the evidence
// that it existed.
func (c *Client) endedAlready(r record.Record, o providers.TerminateOptions) error {
	op := "terminate " + r.ID
	if o.Delete {
		return c.trouble(op, c.store.Remove(r.ID))
	}
	return fault.New(fault.KindGone, "it ended at %s", r.EndedAt.Format(time.RFC3339)).At(c.name, op)
}

// persuade signals the supervisor and waits for its death, which is the end of
// the sandbox. One that is dead or hung leaves the work to bury.
func (c *Client) persuade(ctx context.Context, r record.Record, grace time.Duration) error {
	handle, err := c.supervisorOf(r.ID, r)
	if err != nil {
		return c.buryAsked(ctx, r)
	}
	defer handle.Close()
	if err := handle.Signal(syscall.SIGTERM); err != nil {
		return c.buryAsked(ctx, r)
	}
	limit, cancel := context.WithTimeout(ctx, grace+patience)
	defer cancel()
	if err := handle.Wait(limit); err == nil {
		return c.settled(ctx, r)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, err := c.killTree(ctx, r); err != nil {
		return err
	}
	if err := kill(ctx, handle); err != nil {
		return err
	}
	return c.buryAsked(ctx, r)
}

// kill ends a supervisor over its head; one that died by itself meanwhile is as dead.
func kill(ctx context.Context, handle *identity.Handle) error {
	if err := handle.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, identity.ErrDead) {
		return err
	}
	return handle.Wait(ctx)
}

// settled makes sure that the supervisor wrote its last record before it went.
func (c *Client) settled(ctx context.Context, r record.Record) error {
	last, err := c.store.Read(r.ID)
	if err != nil || last.State.Ended() {
		return ignoreGone(err)
	}
	return c.buryAsked(ctx, last)
}

// buryAsked is bury for a caller to whom it is the same who did it.
func (c *Client) buryAsked(ctx context.Context, r record.Record) error {
	_, err := c.bury(ctx, r)
	return err
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// discard removes a sandbox whose record cannot be read, and ends what its
// signed lock leads to first.
func (c *Client) discard(ctx context.Context, id string) error {
	r := record.Record{ID: id}
	if handle, err := c.supervisorOf(id, r); err == nil {
		defer handle.Close()
		if err := kill(ctx, handle); err != nil {
			return c.trouble("terminate "+id, err)
		}
	}
	_, err := c.killTree(ctx, r)
	if err := errors.Join(err, c.dropGroup(ctx, id)); err != nil {
		return c.trouble("terminate "+id, err)
	}
	if err := c.unlocked(ctx, id); err != nil {
		return c.trouble("terminate "+id, err)
	}
	return c.trouble("terminate "+id, c.store.Remove(id))
}

// unlocked waits until nobody holds a sandbox's lock. A killed supervisor holds it
// until its last thread is gone, which is after it counts as dead, and so does a
// child of its creator between fork and exec.
func (c *Client) unlocked(ctx context.Context, id string) error {
	limit, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if held, err := c.store.Held(id); err != nil || !held {
			return err
		}
		select {
		case <-limit.Done():
			return fmt.Errorf("its lock is still held: %w", limit.Err())
		case <-time.After(blink):
		}
	}
}
