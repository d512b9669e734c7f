package local

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"syscall"
	"time"

	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
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
		query := runlog.Query{Since: q.Since, Tail: q.Tail, Follow: q.Follow, Open: q.Open}
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
	yield(sandbox.MissingOutput("some output could not be stored: the disk may have been full", sandbox.LogGap{Bytes: &r.Exit.DroppedBytes}), nil)
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
	if r.KeepAfterExit {
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
