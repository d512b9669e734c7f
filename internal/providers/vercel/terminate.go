package vercel

import (
	"context"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Terminate stops the session that was judged: the name stays, and a persistent
// one keeps a snapshot. With Delete the name goes with all it holds (DESIGN section
// 2, Ending).
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	if o.Delete {
		return c.delete(ctx, id)
	}
	v, err := c.judged(ctx, "terminate", id)
	switch {
	case err != nil:
		return err
	case over(v.session.Status):
		return fault.New(fault.KindGone, "its session is %s", v.session.Status).At(c.name, "terminate "+id)
	}
	op := "terminate " + id
	var one wireOneSession
	_, err = c.http.JSON(ctx, httpx.Request{Op: op, Method: http.MethodPost, Path: session(v.session.ID, "stop"), Query: c.scoped()}, &one)
	if err == nil {
		err = providers.About(c.name, op, v.session.ID, one.Session.ID)
	}
	switch {
	case moving(err):
		return nil // it is on its way already
	case fault.KindOf(err) == fault.KindGone:
		return c.doubted(ctx, "terminate", id, v.session.ID, err)
	}
	return err
}

// doubted looks whether what a request calls gone is: the session's own record says so
// too, or the answer is not believed.
func (c *Client) doubted(ctx context.Context, op, id, sessionID string, gone error) error {
	var one wireOneSession
	err := c.get(ctx, op+" "+id, session(sessionID), &one)
	if missing(err) || (err == nil && over(one.Session.Status)) {
		return gone
	}
	return fault.New(fault.KindUnavailable, "it says that the session is over, and its record does not: %w", gone).At(c.name, op+" "+id)
}

// delete destroys the name, unless it runs again as another session than the one
// that was judged.
func (c *Client) delete(ctx context.Context, id string) error {
	op := "terminate " + id
	v, err := c.resolve(ctx, "terminate", id)
	switch {
	case err != nil:
		return err
	case v.box == nil:
		return fault.New(fault.KindUnknown, "the API does not tell which sandbox this session belongs to").At(c.name, op).
			WithHint("it is the current session of none; `sbx ls --provider %s --all` shows the sandboxes", c.name)
	case v.followed() && !over(v.box.Status):
		return fault.New(fault.KindRefused, "it was resumed as %s, which is %s", v.box.CurrentSessionID, v.box.Status).At(c.name, op).
			WithHint("look at that one first: `sbx inspect %s/%s`", c.name, v.box.CurrentSessionID)
	}
	c.names.note(v.session.ID, v.box.Name)
	c.names.note(id, v.box.Name)
	var gone wireNamed
	_, err = c.http.JSON(ctx, httpx.Request{
		Op: op, Method: http.MethodDelete, Path: httpx.Path("v2", "sandboxes", v.box.Name), Query: c.scoped("projectId", c.project),
	}, &gone)
	switch {
	case fault.KindOf(err) == fault.KindGone:
		return c.doubted(ctx, "terminate", id, v.session.ID, err)
	case err != nil:
		return err
	}
	return providers.About(c.name, op, v.box.Name, gone.Sandbox.Name)
}

// VerifyEnd looks at the session once more; after a delete its name must be gone
// too, and nothing of it may still run.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	if !q.Delete {
		return c.halted(ctx, id)
	}
	name := c.names.get(id)
	if name == "" {
		return providers.Proof{Ended: sandbox.Unknown, Reason: "which sandbox the session belonged to is not known any more"}, nil
	}
	_, err := c.named(ctx, "verify "+id, name)
	switch {
	case err == nil:
		return providers.Proof{Ended: sandbox.False, Reason: "its name " + name + " is still there"}, nil
	case !missing(err):
		return providers.Proof{}, err
	}
	var one wireOneSession
	switch err := c.get(ctx, "verify "+id, session(id), &one); {
	case err != nil && !missing(err):
		return providers.Proof{}, err
	case err == nil && !over(one.Session.Status):
		return providers.Proof{Ended: sandbox.False, Reason: "its session is still " + one.Session.Status}, nil
	}
	return c.proof("name", name+" is not there"), nil
}

// halted looks whether a session runs no more.
func (c *Client) halted(ctx context.Context, id string) (providers.Proof, error) {
	v, err := c.judged(ctx, "verify", id)
	switch {
	case missing(err):
		return c.proof("session", "is not there"), nil
	case err != nil:
		return providers.Proof{}, err
	case !over(v.session.Status):
		return providers.Proof{Ended: sandbox.False, Reason: "its session is still " + v.session.Status}, nil
	}
	return c.proof("session", v.session.Status), nil
}

func (c *Client) proof(what, value string) providers.Proof {
	return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{{What: what, Value: value, Source: "API", At: c.now()}}}
}
