package local

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/poll"
	"sbx/internal/providers"
)

// labelsPause is the time between two attempts to take the lock of a sandbox's labels, which another process
// holds for a read and a write of a small file.
const labelsPause = 5 * time.Millisecond

// EditLabels writes the labels beside the record, under a lock of their own: the record belongs to the
// supervisor while that lives.
func (c *Client) EditLabels(ctx context.Context, id string, edit func(labels map[string]string)) (map[string]string, error) {
	op := "labels " + id
	if _, err := c.loadRecord(ctx, "labels", id); err != nil {
		return nil, err
	}
	for {
		lock, got, err := c.store.TryLockLabels(id)
		switch {
		case err != nil:
			return nil, c.labelsError(op, id, err)
		case got:
			defer lock.Close()
			return c.editLocked(ctx, op, id, edit)
		case poll.Sleep(ctx, labelsPause) != nil:
			return nil, c.classifyError(op, ctx.Err())
		}
	}
}

func (c *Client) editLocked(ctx context.Context, op, id string, edit func(labels map[string]string)) (map[string]string, error) {
	r, err := c.loadRecord(ctx, "labels", id)
	switch {
	case err != nil:
		return nil, err
	case r.Newer():
		return nil, fault.New(fault.KindRefused, "its record was written by a newer sbx (%s)", r.Version).At(c.name, op).
			WithHint("use that version, or a newer one")
	case r.State.Ended():
		return nil, fault.New(fault.KindGone, "it ended at %s", r.EndedAt.Format(time.RFC3339)).At(c.name, op)
	}
	labels, changed, err := providers.EditedLabels(r.Labels, edit)
	if err == nil && changed {
		err = c.store.WriteLabels(id, labels)
	}
	return labels, c.labelsError(op, id, err)
}

// labelsError is the error of a file of labels; a folder that an end has removed meanwhile is a missing sandbox.
func (c *Client) labelsError(op, id string, err error) error {
	if err != nil && ignoreGone(err) == nil {
		return c.notFound(id)
	}
	return c.classifyError(op, err)
}
