package vercel

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// The API knows no end of "so far". The log of a command that still runs is all
// there once it has brought nothing for quiet; one that never rests is left after
// busy.
const (
	quiet = time.Second
	busy  = 20 * time.Second
)

// readFirst is the way out of a log that went with its session.
const readFirst = "output is kept only while the session runs: read it before `sbx terminate`"

// CapturesOutput is false: the API keeps the output of each command without times, and
// what a shell left behind writes nowhere.
func (c *Client) CapturesOutput(sandbox.Sandbox) bool { return false }

// Processes lists the commands of a running session that have not ended, without
// sbx's own looks.
func (c *Client) Processes(ctx context.Context, id string) ([]providers.Process, error) {
	op := "processes " + id
	v, err := c.resolve(ctx, op, id)
	if err != nil || v.session.Status != "running" {
		return nil, err
	}
	var all wireCommands
	if err := c.get(ctx, op, session(v.session.ID, "cmd"), &all); err != nil {
		return nil, err
	}
	rows, err := all.Commands.Rows()
	if err != nil {
		return nil, fault.Placed(err, c.name, op)
	}
	var found []providers.Process
	for _, w := range rows {
		if w.ExitCode == nil && !w.probe() {
			found = append(found, providers.Process{Args: append([]string{w.Name}, w.Args...)})
		}
	}
	return found, nil
}

// Logs reads the output of the program that create started, from its files inside;
// of any other session the output of its commands, oldest first. The API keeps that
// by command, without times, and only while the session runs.
func (c *Client) Logs(ctx context.Context, id string, q providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		v, err := c.resolve(ctx, "logs", id)
		switch {
		case err != nil:
			yield(sandbox.LogLine{}, err)
		case v.ours() && v.session.Status == "running" && c.programLogs(ctx, v, q, yield):
		default:
			r := &commandLogs{c: c, v: v, q: q, op: "logs " + id, known: map[string]*output{}}
			r.give(ctx, yield)
		}
	}
}

// programLogs yields what the program that create started has written; false, and
// nothing yielded, where there is none.
func (c *Client) programLogs(ctx context.Context, v view, q providers.LogQuery, yield func(sandbox.LogLine, error) bool) bool {
	for line, err := range guest.Logs(ctx, c.shellOf(v.session.ID), guest.Main, q) {
		if errors.Is(err, guest.ErrNoRun) {
			return false
		}
		if !yield(line, fault.Placed(err, c.name, "logs "+v.session.ID)) {
			break
		}
	}
	return true
}

// commandLogs is one reader's place in the output of a session's commands.
type commandLogs struct {
	c     *Client
	v     view
	q     providers.LogQuery
	op    string
	known map[string]*output // by command
	order []*output
	tail  []sandbox.LogLine
}

// give yields what there is, then what comes.
func (r *commandLogs) give(ctx context.Context, yield func(sandbox.LogLine, error) bool) {
	err := r.now(ctx, func(l sandbox.LogLine) bool {
		if r.q.Tail <= 0 {
			return yield(l, nil)
		}
		r.tail = append(r.tail, l)
		r.tail = r.tail[max(0, len(r.tail)-r.q.Tail):]
		return true
	})
	switch {
	case errors.Is(err, errEnough), !guest.Give(r.tail, yield):
	case err != nil:
		yield(sandbox.LogLine{}, err)
	case r.q.Follow:
		r.follow(ctx, yield)
	}
}

// now reads what every command has written so far.
func (r *commandLogs) now(ctx context.Context, take func(sandbox.LogLine) bool) error {
	fresh, err := r.commands(ctx)
	if err != nil {
		return r.c.stopped(err, readFirst)
	}
	if len(fresh) == 0 && r.v.ours() && over(r.v.session.Status) {
		return fault.New(fault.KindGone, "what its program wrote went with the session").At(r.c.name, r.op).WithHint(readFirst)
	}
	if r.q.Since.After(r.c.now()) {
		take = func(sandbox.LogLine) bool { return true } // what has no time cannot be from the future
	}
	for _, o := range fresh {
		if r.q.Follow && r.q.Tail <= 0 && !o.ended() {
			continue // all of it comes while following
		}
		o.take = take
		if err := o.read(ctx, quiet); err != nil {
			return r.c.stopped(err, readFirst)
		}
		if o.told = o.ended() || !r.q.Follow; o.told && !o.flush() {
			return errEnough
		}
	}
	return nil
}

// commands gives those that were not known, oldest first; sbx's own looks are none,
// nor what ended before Since.
func (r *commandLogs) commands(ctx context.Context) ([]*output, error) {
	var all wireCommands
	if err := r.c.get(ctx, r.op, session(r.v.session.ID, "cmd"), &all); err != nil {
		return nil, err
	}
	rows, err := all.Commands.Rows()
	if err != nil {
		return nil, fault.Placed(err, r.c.name, r.op)
	}
	var fresh []*output
	for _, w := range slices.Backward(rows) { // the newest come first
		if r.known[w.ID] != nil || w.probe() {
			continue
		}
		o := newOutput(r, w)
		r.known[w.ID] = o
		if !w.before(r.q.Since) {
			fresh = append(fresh, o)
		}
	}
	r.order = append(r.order, fresh...)
	return fresh, nil
}

// probe says that the command is a look of sbx itself.
func (w wireCommand) probe() bool { return len(w.Args) > 0 && w.Args[len(w.Args)-1] == probeName }

// before says that the command had ended by then.
func (w wireCommand) before(at time.Time) bool {
	started := w.StartedAt.time()
	return w.ExitCode != nil && w.DurationMS > 0 && !started.IsZero() && started.Add(w.DurationMS.duration()).Before(at)
}
