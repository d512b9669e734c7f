package local

import (
	"context"
	"iter"

	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/sandbox"
)

// Logs reads a sandbox's output from its files.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r, err := c.load(ctx, "logs", id)
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		query := runlog.Query{Since: q.Since, Tail: q.Tail, Follow: q.Follow}
		if q.Follow {
			query.Done = c.ended(ctx, r)
		}
		for line, err := range runlog.Read(ctx, c.store.Dir(id), query) {
			if err != nil {
				err = c.trouble("logs "+id, err)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// ended closes its channel when the sandbox's supervisor is gone: it lives
// until the last output is on disk.
func (c *Client) ended(ctx context.Context, r record.Record) <-chan struct{} {
	done := make(chan struct{})
	if r.State.Ended() {
		close(done)
		return done
	}
	handle, err := c.supervisorOf(r.ID, r)
	if err != nil {
		close(done)
		return done
	}
	go func() {
		defer close(done)
		defer handle.Close()
		_ = handle.Wait(ctx) // either it is gone or nobody listens any more
	}()
	return done
}
