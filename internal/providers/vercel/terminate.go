package vercel

import (
	"context"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
)

// Terminate stops the session that was judged: the name stays, and a persistent
// one keeps a snapshot. With Delete the name goes with all it holds.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	v, err := c.resolve(ctx, "terminate", id)
	switch {
	case err != nil:
		return err
	case o.Delete:
		return c.delete(ctx, id, v)
	case v.session.over():
		return fault.New(fault.KindGone, "its session is %s", v.session.Status).At(c.name, "terminate "+id)
	}
	_, err = c.http.Do(ctx, httpx.Request{Op: "terminate " + id, Method: http.MethodPost, Path: session(v.session.ID, "stop"), Query: c.scoped()})
	if moving(err) {
		return nil // it is on its way already
	}
	return err
}

// delete destroys the name, unless it runs again as another session than the one
// that was judged.
func (c *Client) delete(ctx context.Context, id string, v view) error {
	op := "terminate " + id
	if v.box == nil {
		return fault.New(fault.KindUnknown, "the API does not tell which sandbox this session belongs to").At(c.name, op).
			WithHint("name the sandbox: `sbx terminate %s/NAME --delete`", c.name)
	}
	if v.box.CurrentSessionID != v.session.ID && v.box.Status == "running" {
		return fault.New(fault.KindRefused, "it was resumed and runs as %s", v.box.CurrentSessionID).At(c.name, op).
			WithHint("look at that one first: `sbx inspect %s/%s`", c.name, v.box.CurrentSessionID)
	}
	_, err := c.http.Do(ctx, httpx.Request{
		Op: op, Method: http.MethodDelete, Path: httpx.Path("v2", "sandboxes", v.box.Name), Query: c.scoped("projectId", c.project),
	})
	return err
}
