package vercel

import (
	"context"

	"sbx/internal/fault"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// Usage is measured by a command inside while the session runs, since the API has
// no live figures; afterwards it tells the processor time of the whole run, after
// a stop that went well.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	v, err := c.judged(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	limit := limits(nil, v.session.Memory).MemoryBytes
	if v.session.Status != "running" {
		u := sandbox.Usage{At: c.now(), Source: "API (the whole run, once it is over)", MemoryLimitBytes: limit}
		if ms := v.session.ActiveCPUDurationMS; ms != nil && *ms >= 0 {
			u.CPUSeconds = new(*ms / 1000)
		}
		return u, nil
	}
	u, err := guest.Usage(ctx, c.shellOf(v.session.ID), c.now())
	if u.MemoryLimitBytes == nil {
		u.MemoryLimitBytes = limit
	}
	return u, fault.Placed(err, c.name, "usage "+id)
}
