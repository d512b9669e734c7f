package local

import (
	"context"
	"errors"
	"io/fs"

	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// load reads a record for a verb on one sandbox.
func (c *Client) load(ctx context.Context, op, id string) (record.Record, error) {
	if err := ctx.Err(); err != nil {
		return record.Record{}, c.trouble(op+" "+id, err)
	}
	if err := c.present(op, id); err != nil {
		return record.Record{}, err
	}
	r, err := c.store.Read(id)
	if errors.Is(err, fs.ErrNotExist) {
		return r, c.notFound(id)
	}
	return r, c.trouble(op+" "+id, err)
}

// Events gives the record's timeline.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	r, err := c.load(ctx, "events", id)
	if err != nil {
		return nil, err
	}
	events := make([]sandbox.Event, 0, len(r.Events))
	for _, e := range r.Events {
		events = append(events, sandbox.Event(e))
	}
	return events, nil
}
