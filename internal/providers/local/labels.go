package local

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
)

// editPause is the time between two attempts to take the lock of an edit, which another process holds for a read and a
// write of a small file, or its supervisor while it ends.
const editPause = 5 * time.Millisecond

// EditLabels writes the labels beside the record, under a lock of their own: the record belongs to the
// supervisor while that lives.
func (c *Client) EditLabels(ctx context.Context, id string, edit func(labels map[string]string)) (map[string]string, error) {
	op := "labels " + id
	return inEdit(ctx, c, "labels", id, func() (map[string]string, error) { return c.editLocked(ctx, op, id, edit) })
}

// inEdit does something while no other process edits the sandbox.
func inEdit[T any](ctx context.Context, c *Client, verb, id string, do func() (T, error)) (none T, err error) {
	op := verb + " " + id
	if _, err := c.loadRecord(ctx, verb, id); err != nil {
		return none, err
	}
	for {
		lock, got, err := c.store.TryLockEdit(id)
		switch {
		case err != nil:
			return none, c.editError(op, id, err)
		case got:
			defer lock.Close()
			return do()
		case poll.Sleep(ctx, editPause) != nil:
			return none, c.classifyError(op, ctx.Err())
		}
	}
}

func (c *Client) editLocked(ctx context.Context, op, id string, edit func(labels map[string]string)) (map[string]string, error) {
	r, err := c.loadRecord(ctx, "labels", id)
	switch {
	case err != nil:
		return nil, err
	case r.Newer():
		return nil, c.newerRecord(op, r)
	case r.State.Ended():
		return nil, fault.New(fault.KindGone, "it ended at %s", r.EndedAt.Format(time.RFC3339)).At(c.name, op)
	}
	labels, changed, err := providers.EditedLabels(r.Labels, edit)
	if err == nil && changed {
		err = c.store.WriteLabels(id, labels)
	}
	return labels, c.editError(op, id, err)
}

// editError is the error of a file of an edit; a folder that an end has removed meanwhile is a missing sandbox.
func (c *Client) editError(op, id string, err error) error {
	if err != nil && ignoreGone(err) == nil {
		return c.notFound(id)
	}
	return c.classifyError(op, err)
}

// newerRecord refuses to change what a newer sbx has written.
func (c *Client) newerRecord(op string, r record.Record) error {
	return fault.New(fault.KindRefused, "its record was written by a newer sbx (%s)", r.Version).At(c.name, op).
		WithHint("use that version, or a newer one")
}
