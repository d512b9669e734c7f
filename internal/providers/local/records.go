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

// Records gives the record files as they are, whatever has become of the processes:
// what they say is held against what runs.
func (c *Client) Records(ctx context.Context) iter.Seq2[providers.Record, error] {
	return func(yield func(providers.Record, error) bool) {
		ids, err := c.store.IDs()
		if err != nil {
			yield(providers.Record{}, c.trouble("records", err))
			return
		}
		for _, id := range ids {
			r, err := c.store.Read(id)
			switch {
			case ctx.Err() != nil:
				yield(providers.Record{}, c.trouble("records", ctx.Err()))
				return
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
				continue // removed, or not there yet, or no record
			case errors.Is(err, record.ErrGarbage):
				r = record.Record{ID: id, State: sandbox.StateUnknown}
			case err != nil:
				if !yield(providers.Record{}, c.trouble("records", err)) {
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
