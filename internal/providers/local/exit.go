package local

import (
	"context"

	"sbx/internal/sandbox"
)

// Exit is that of the program, also while its sandbox lingers; nil while it runs.
func (c *Client) Exit(ctx context.Context, id string) (*sandbox.Exit, error) {
	r, err := c.load(ctx, "exit", id)
	if err != nil {
		return nil, err
	}
	if r.ProgramEnded() {
		return c.explain(ctx, r), nil
	}
	s, err := c.Get(ctx, id) // it may be lost, which its record does not tell
	return s.Exit, err
}
