package vercel

import (
	"context"
	"slices"

	"sbx/internal/sandbox"
)

// Events tells a session's life from its timestamps, and when its name came to be,
// which may be long before; the API keeps no other record.
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
