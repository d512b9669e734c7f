package vercel

import (
	"context"

	"sbx/internal/fault"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

// Exit is that of the program which create started, from its file inside; of a
// session that is over, how that ended.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	v, err := c.resolve(ctx, "exit", id)
	op := "exit " + id
	switch {
	case err != nil:
		return nil, err
	case over(v.session.Status):
		return sessionExit(v.session.Status, v.session, v.session.ended()), nil
	case !v.ours():
		return nil, fault.Placed(fault.New(fault.KindNotFound, "%w", guest.ErrNoRun), c.name, op)
	}
	if err := c.idle(v, op); err != nil {
		return nil, err
	}
	exit, err := guest.Exit(ctx, c.shellOf(v.session.ID), guest.Main)
	return exit, fault.Placed(err, c.name, op)
}
