package local

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"syscall"

	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/sandbox"
)

// Records returns the record files as they are, whatever the state of the processes, for a
// comparison with the running processes.
func (c *Client) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		ids, err := c.store.IDs()
		if err != nil {
			yield(providers.Record{}, c.classifyError("records", err))
			return
		}
		for _, id := range ids {
			r, err := c.store.Read(id)
			switch {
			case ctx.Err() != nil:
				yield(providers.Record{}, c.classifyError("records", ctx.Err()))
				return
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
				continue // removed, not written yet, or no record
			case errors.Is(err, record.ErrGarbage):
				r = record.Record{ID: id, State: sandbox.StateUnknown}
			case err != nil:
				if !yield(providers.Record{}, c.classifyError("records", err)) {
					return
				}
				continue
			}
			if !yield(recordOf(r), nil) {
				return
			}
		}
	}
}

func recordOf(r record.Record) providers.Record {
	live := sandbox.VerdictOf(!r.State.Ended())
	if r.State == sandbox.StateUnknown {
		live = sandbox.Unknown
	}
	return providers.Record{
		SandboxID: r.ID, TaskID: r.TaskID, AgentType: r.AgentType, RawState: string(r.State), Live: live,
		CreatedAt: r.CreatedAt, UpdatedAt: r.EndedAt, EndedAt: r.EndedAt,
	}
}

// Exit is the exit of the program, also while its sandbox lingers; nil while it runs.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	r, err := c.loadRecord(ctx, "exit", id)
	if err != nil {
		return nil, err
	}
	if r.ProgramEnded() {
		return c.exitWithLogs(ctx, r), nil
	}
	s, err := c.Get(ctx, id) // it may be lost, which the record does not show
	return s.Exit, err
}

func (c *Client) loadRecord(ctx context.Context, op, id string) (record.Record, error) {
	if err := ctx.Err(); err != nil {
		return record.Record{}, c.classifyError(op+" "+id, err)
	}
	if err := c.checkExists(op, id); err != nil {
		return record.Record{}, err
	}
	r, err := c.store.Read(id)
	if errors.Is(err, fs.ErrNotExist) {
		return r, c.notFound(id)
	}
	return r, c.classifyError(op+" "+id, err)
}

// Events returns the record's timeline.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	r, err := c.loadRecord(ctx, "events", id)
	if err != nil {
		return nil, err
	}
	events := make([]sandbox.Event, 0, len(r.Events))
	for _, e := range r.Events {
		events = append(events, sandbox.Event(e))
	}
	return events, nil
}
