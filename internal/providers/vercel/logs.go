package vercel

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// The API does not mark the end of the log so far. The log of a command that still runs
// counts as read when nothing has come for quietTime; a command that never pauses is read
// for busyTime.
const (
	quietTime = time.Second
	busyTime  = 20 * time.Second
)

// readFirst is the hint for a log that was lost with its session.
const readFirst = "output is kept only while the session runs: read it before `sbx terminate`"

// CapturesOutput is false: the API keeps the output of each command without times, and no
// output of background processes that outlive their shell.
func (c *Client) CapturesOutput(sandbox.Sandbox) bool { return false }

// Processes lists the commands of a running session that have not ended, without the scripts
// of sbx.
func (c *Client) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	op := "processes " + id
	v, err := c.resolve(ctx, op, id)
	if err != nil || v.session.Status != "running" {
		return nil, err
	}
	var all wireCommands
	if err := c.getObject(ctx, op, sessionPath(v.session.ID, "cmd"), &all); err != nil {
		return nil, err
	}
	rows, err := all.Commands.Rows()
	if err != nil {
		return nil, fault.Placed(err, c.Profile, op)
	}
	var found []providers.Process
	for _, w := range rows {
		if w.ExitCode == nil && !w.isProbe() {
			found = append(found, providers.Process{Args: append([]string{w.Name}, w.Args...)})
		}
	}
	return found, nil
}

// Logs reads the output of the program that create started, from its files inside; of any
// other session the output of its commands, oldest first. The API keeps that by command,
// without times, and only while the session runs.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		v, err := c.resolve(ctx, "logs", id)
		switch {
		case err != nil:
			yield(sandbox.LogLine{}, err)
		case v.madeBySbx() && v.session.Status == "running" && c.programLogs(ctx, v, q, yield):
		default:
			r := &commandLogs{c: c, v: v, q: q, op: "logs " + id, known: map[string]*outputReader{}}
			r.deliver(ctx, yield)
		}
	}
}

// programLogs yields the output of the program that create started; false, and nothing
// yielded, where there is none.
func (c *Client) programLogs(ctx context.Context, v view, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) bool {
	for line, err := range guest.Logs(ctx, c.shellOf(v.session.ID, nil), guest.MainTag, q) {
		if errors.Is(err, guest.ErrNoRun) {
			return false
		}
		if !yield(line, fault.Placed(err, c.Profile, "logs "+v.session.ID)) {
			break
		}
	}
	return true
}

// commandLogs is the position of one reader in the output of a session's commands.
type commandLogs struct {
	c     *Client
	v     view
	q     providers.LogQuery
	op    string
	known map[string]*outputReader // by command
	order []*outputReader
	tail  []sandbox.LogLine

	refused error // of commands in the list that cannot be read; the output of the others is
}

// deliver yields the output so far, and with Follow the output that comes.
func (r *commandLogs) deliver(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	err := r.readAvailable(ctx, func(l sandbox.LogLine) bool {
		if r.q.Tail <= 0 {
			return yield(l, nil)
		}
		r.tail = wirekit.LastLines(append(r.tail, l), r.q.Tail)
		return true
	})
	switch {
	case errors.Is(err, errEnough), !wirekit.YieldLines(r.tail, yield):
	case err != nil:
		yield(sandbox.LogLine{}, err)
	case r.q.Follow:
		r.follow(ctx, yield)
	}
}

func (r *commandLogs) readAvailable(ctx context.Context, take func(sandbox.LogLine) bool) error {
	fresh, err := r.newCommands(ctx)
	if err != nil {
		return r.c.withGoneHint(err, readFirst)
	}
	if len(fresh) == 0 && r.v.madeBySbx() && sessionEnded(r.v.session.Status) {
		return r.c.Fault(fault.KindGone, r.op, "its output was deleted with the session").WithHint(readFirst)
	}
	if r.q.Since.After(r.c.Now()) {
		take = func(sandbox.LogLine) bool { return true } // a line without a time cannot be from the future
	}
	for _, o := range fresh {
		if r.q.Follow && r.q.Tail <= 0 && !o.commandEnded() {
			continue // all of it is read while following
		}
		o.take = take
		if err := o.readAll(ctx, quietTime); err != nil {
			return r.c.withGoneHint(err, readFirst)
		}
		if o.complete = o.commandEnded() || !r.q.Follow; o.complete && !o.flushPartial() {
			return errEnough
		}
	}
	return r.refused
}

// newCommands are the commands that were not known, oldest first, without the scripts of sbx
// and without those that ended before Since.
func (r *commandLogs) newCommands(ctx context.Context) ([]*outputReader, error) {
	var all wireCommands
	if err := r.c.getObject(ctx, r.op, sessionPath(r.v.session.ID, "cmd"), &all); err != nil {
		return nil, err
	}
	rows, err := all.Commands.Rows()
	if r.refused = fault.Placed(err, r.c.Profile, r.op); err != nil && !httpx.OnlyRefused(err) {
		return nil, r.refused
	}
	var fresh []*outputReader
	for _, w := range slices.Backward(rows) { // the newest come first
		if r.known[w.ID] != nil || w.isProbe() {
			continue
		}
		o := newOutputReader(r, w)
		r.known[w.ID] = o
		if !w.endedBefore(r.q.Since) {
			fresh = append(fresh, o)
		}
	}
	r.order = append(r.order, fresh...)
	return fresh, nil
}

func (w wireCommand) isProbe() bool { return len(w.Args) > 2 && w.Args[2] == guest.ScriptName } // see guest.Argv

func (w wireCommand) endedBefore(at time.Time) bool {
	started := w.StartedAt.time()
	return w.ExitCode != nil && w.DurationMS > 0 && !started.IsZero() && started.Add(w.DurationMS.duration()).Before(at)
}

// maxPollInterval is the longest time between two lists of commands while following.
const maxPollInterval = 4 * time.Second

// logFollower reads the output of several commands at once: a server may run for as long as
// the session.
type logFollower struct {
	r       *commandLogs
	lines   chan sandbox.LogLine
	failed  chan error
	running sync.WaitGroup
	done    chan struct{} // closed when the session and all readers have ended; nil before
	pauses  *poll.Backoff
	poll    <-chan time.Time // when to look for new commands; nil = never
}

// follow reads the output of all commands, also of those that start meanwhile, until the
// session has ended.
func (r *commandLogs) follow(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	f := &logFollower{r: r, lines: make(chan sandbox.LogLine), failed: make(chan error), pauses: poll.NewBackoff(pollInterval, maxPollInterval)}
	defer f.running.Wait()
	defer cancel()
	f.poll = f.pauses.After()
	f.startReaders(ctx, r.order)
	for {
		var err error
		select {
		case l := <-f.lines:
			if !yield(l, nil) {
				return
			}
		case <-f.done:
			return
		case <-f.poll:
			err = f.findCommands(ctx)
		case err = <-f.failed:
		case <-ctx.Done():
			err = r.c.contextFault(ctx, r.op)
		}
		if err != nil {
			yield(sandbox.LogLine{}, err)
			return
		}
	}
}

func (f *logFollower) findCommands(ctx context.Context) error {
	r := f.r
	var one wireOneSession
	err := r.c.getObject(ctx, r.op, sessionPath(r.v.session.ID), &one)
	if wirekit.Missing(err) || (err == nil && sessionEnded(one.Session.Status)) {
		f.poll, f.done = nil, make(chan struct{})
		go func() {
			f.running.Wait()
			close(f.done)
		}()
		return nil
	}
	var fresh []*outputReader
	if err == nil {
		fresh, err = r.newCommands(ctx)
	}
	if err != nil && !wirekit.Missing(err) && !inTransition(err) { // it may have ended just now, which the next call sees
		return err
	}
	f.startReaders(ctx, fresh)
	if len(fresh) > 0 {
		f.pauses.Reset()
	}
	f.poll = f.pauses.After()
	return nil
}

// startReaders starts to read commands to their ends. The end of the session is a plain end
// of a log.
func (f *logFollower) startReaders(ctx context.Context, outputs []*outputReader) {
	for _, o := range outputs {
		if o.complete {
			continue
		}
		o.open = f.r.q.Open
		o.take = func(l sandbox.LogLine) bool {
			select {
			case f.lines <- l:
				return true
			case <-ctx.Done():
				return false
			}
		}
		f.running.Go(func() {
			err := o.readAll(ctx, 0)
			if err == nil || wirekit.Missing(err) {
				o.flushPartial()
				return
			}
			select {
			case f.failed <- err:
			case <-ctx.Done():
			}
		})
	}
}
