package local

import (
	"context"
	"iter"
	"time"

	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
	"sbx/internal/sandbox"
)

// CapturesOutput is true: the supervisor records the program's output.
func (c *Client) CapturesOutput(sandbox.Sandbox) bool { return true }

// Logs reads a sandbox's output from its files.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		r, err := c.loadRecord(ctx, "logs", id)
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		query := runlog.Query{Since: q.Since, Tail: q.Tail, Follow: q.Follow}
		if q.Follow {
			query.Done = c.programEndSignal(ctx, r)
		}
		for line, err := range runlog.Read(ctx, c.store.Dir(id), query) {
			if err != nil {
				err = c.classifyError("logs "+id, err)
			}
			if !yield(line, err) {
				return
			}
			if err != nil {
				return
			}
		}
		c.reportDropped(id, yield)
	}
}

// reportDropped yields a gap for output that was never written to disk; the record has its
// size once the sandbox has ended.
func (c *Client) reportDropped(id string, yield func(sandbox.LogLine, error) bool) {
	r, err := c.store.Read(id)
	if err != nil || r.Exit == nil || r.Exit.DroppedBytes == 0 {
		return
	}
	yield(sandbox.MissingOutput("output is missing that could not be written: was the disk full?", sandbox.LogGap{Bytes: &r.Exit.DroppedBytes}), nil)
}

// programEndInterval is the interval at which a follower checks whether the program of a lingering
// sandbox has ended: its supervisor goes on running then.
const programEndInterval = 50 * time.Millisecond

// programEndSignal closes its channel when the last output of the program is on disk: the
// record says so, or the supervisor, which lives until then, has exited.
func (c *Client) programEndSignal(ctx context.Context, r record.Record) <-chan struct{} {
	done := make(chan struct{})
	if r.ProgramEnded() || r.State.Ended() {
		close(done)
		return done
	}
	handle, err := c.openSupervisor(r.ID, r)
	if err != nil {
		close(done)
		return done
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		defer handle.Close()
		defer cancel()
		_ = handle.Wait(ctx) // it has exited, its program has ended, or the reader has stopped
	}()
	if r.Linger {
		go c.waitForProgramEnd(ctx, r.ID, cancel)
	}
	return done
}

// waitForProgramEnd calls done when the record has the program's exit or ctx has ended.
func (c *Client) waitForProgramEnd(ctx context.Context, id string, done func()) {
	defer done()
	for {
		r, err := c.store.Read(id)
		if err == nil && r.ProgramEnded() || poll.Sleep(ctx, programEndInterval) != nil {
			return
		}
	}
}
