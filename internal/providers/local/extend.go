package local

import (
	"context"
	"time"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Extend stores a later end beside the record, which belongs to the supervisor while that lives. The supervisor reads it
// when the earlier end has come, under the lock of an edit, which it then keeps where it finds none: what was stored
// under that lock before is obeyed.
func (c *Client) Extend(ctx context.Context, id string, until time.Time) (sandbox.Sandbox, error) {
	return inEdit(ctx, c, "extend", id, func() (sandbox.Sandbox, error) {
		op := "extend " + id
		before, err := providers.ReadToExtend(ctx, c, id, until)
		if err != nil {
			return before, err
		}
		switch r, err := c.loadRecord(ctx, "extend", id); {
		case err != nil:
			return sandbox.Sandbox{}, err
		case r.Newer():
			return sandbox.Sandbox{}, c.newerRecord(op, r)
		case !r.EndMoves:
			return sandbox.Sandbox{}, fault.New(fault.KindUnsupported, "its supervisor is of an older sbx (%s), and keeps the end that it began with", r.Version).
				At(c.name, op).WithHint("`sbx create --ttl` makes another")
		}
		return before, c.editError(op, id, c.store.MoveEnd(id, until))
	})
}
