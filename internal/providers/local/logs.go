package local

import (
	"context"
	"iter"
	"time"

	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/sandbox"
)

// CapturesOutput is true: the supervisor writes down what the program writes.
func (c *Client) CapturesOutput(sandbox.Sandbox) bool { return true }

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
			if err != nil {
				return
			}
		}
		c.unwritten(id, yield)
	}
}

// unwritten tells of output that never reached the disk; the record has it once the
// sandbox has ended.
func (c *Client) unwritten(id string, yield func(sandbox.LogLine, error) bool) {
	r, err := c.store.Read(id)
	if err != nil || r.Exit == nil || r.Exit.DroppedBytes == 0 {
		return
	}
	yield(sandbox.MissingOutput("output is missing that could not be written: was the disk full?", sandbox.LogGap{Bytes: &r.Exit.DroppedBytes}), nil)
}

// endLook is how often a follower looks whether the program of a lingering sandbox
// has ended; its supervisor stays then, and its going tells nothing.
const endLook = 50 * time.Millisecond

// ended closes its channel when the last output of the program is on disk: the
// record tells so, or the supervisor, which lives until then, is gone.
func (c *Client) ended(ctx context.Context, r record.Record) <-chan struct{} {
	done := make(chan struct{})
	if r.ProgramEnded() || r.State.Ended() {
		close(done)
		return done
	}
	handle, err := c.supervisorOf(r.ID, r)
	if err != nil {
		close(done)
		return done
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		defer handle.Close()
		defer cancel()
		_ = handle.Wait(ctx) // it is gone, its program has ended, or nobody listens any more
	}()
	if r.Linger {
		go c.untilProgramEnds(ctx, r.ID, cancel)
	}
	return done
}

// untilProgramEnds tells when the record says so, or ctx has ended.
func (c *Client) untilProgramEnds(ctx context.Context, id string, tell func()) {
	defer tell()
	pace := time.NewTicker(endLook)
	defer pace.Stop()
	for {
		if r, err := c.store.Read(id); err == nil && r.ProgramEnded() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
	}
}
