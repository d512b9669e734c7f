package local

import (
	"context"
	"errors"
	"io/fs"

	"sbx/internal/providers"
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

// Probe looks whether supervisor and program live.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	r, err := c.load(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	now := c.now().UTC()
	alive, err := c.alive(r)
	if err != nil {
		return providers.Health{Verdict: sandbox.Unknown}, nil //nolint:nilerr // not knowing is the answer of a probe
	}
	evidence := []sandbox.Evidence{{What: "supervisor", Value: word(alive), Source: "lock of the record", At: now}}
	healthy := alive
	if alive && r.Program.PID > 0 {
		running, err := r.Program.Alive()
		if err != nil {
			return providers.Health{Verdict: sandbox.Unknown, Evidence: evidence}, nil //nolint:nilerr // not knowing is the answer of a probe
		}
		evidence = append(evidence, sandbox.Evidence{What: "program", Value: word(running), Source: "pidfd", At: now})
		healthy = running
	}
	return providers.Health{Verdict: sandbox.VerdictOf(healthy), Evidence: evidence}, nil
}

func word(alive bool) string {
	if alive {
		return "alive"
	}
	return "dead"
}
