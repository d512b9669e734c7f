package vercel

import (
	"context"
	"slices"

	"sbx/internal/fault"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// Exit is the exit of the program that create started, from its file inside; after the
// session has ended, how that ended.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	v, err := c.resolve(ctx, "exit", id)
	op := "exit " + id
	switch {
	case err != nil:
		return nil, err
	case sessionEnded(v.session.Status):
		return sessionExit(v.session.Status, v.session, v.session.endTime()), nil
	case !v.madeBySbx():
		return nil, fault.Placed(fault.New(fault.KindNotFound, "%w", guest.ErrNoRun), c.Profile, op)
	}
	if err := c.checkRunning(v, op); err != nil {
		return nil, err
	}
	exit, err := guest.Exit(ctx, c.shellOf(v.session.ID, nil), guest.MainTag)
	return exit, fault.Placed(err, c.Profile, op)
}

// Events are the timestamps of a session, and the creation of its name, which may be long
// before; the API keeps no other record.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	v, err := c.resolve(ctx, "events", id)
	if err != nil {
		return nil, err
	}
	var all []sandbox.Event
	add := func(at millis, name, detail string) {
		if moment := at.time(); !moment.IsZero() {
			all = append(all, sandbox.Event{At: moment, Event: name, Detail: detail})
		}
	}
	if v.box != nil {
		add(v.box.CreatedAt, "created", "the name "+v.box.Name)
	}
	w := v.session
	add(w.RequestedAt, "requested", "session "+w.ID)
	add(w.StartedAt, "started", "")
	add(w.RequestedStopAt, "stop requested", "")
	add(w.SnapshottedAt, "snapshotted", "")
	add(w.StoppedAt, "stopped", "")
	add(w.AbortedAt, "aborted", "by the platform")
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return all, nil
}

// Usage is measured by a command inside while the session runs, since the API has no live
// figures; after a regular stop the API has the processor time of the whole run.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	v, err := c.findSession(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	limit := toLimits(nil, v.session.Memory).MemoryBytes
	if v.session.Status != "running" {
		u := sandbox.Usage{At: c.Now(), Source: "API (the whole run, once it is over)", MemoryLimitBytes: limit}
		if ms := v.session.ActiveCPUDurationMS; ms != nil && *ms >= 0 {
			u.CPUSeconds = new(*ms / 1000)
		}
		return u, nil
	}
	u, err := guest.Usage(ctx, c.shellOf(v.session.ID, nil), c.Now())
	if u.MemoryLimitBytes == nil {
		u.MemoryLimitBytes = limit
	}
	return u, fault.Placed(err, c.Profile, "usage "+id)
}
