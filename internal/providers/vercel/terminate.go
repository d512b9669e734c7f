package vercel

import (
	"cmp"
	"context"
	"net/http"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Terminate stops the session of the id: the name stays, and a persistent sandbox keeps a
// snapshot. With Delete the name is deleted with its snapshots.
func (c *Client) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	if o.Delete {
		return c.deleteSandbox(ctx, id, o.Insist)
	}
	v, err := c.findSession(ctx, "terminate", id)
	switch {
	case o.Insist && (wirekit.Missing(err) || err == nil && sessionEnded(v.session.Status)):
		v.session = &wireSession{ID: id}
	case err != nil:
		return providers.NothingSent(err)
	case sessionEnded(v.session.Status):
		return fault.New(fault.KindGone, "its session is %s", v.session.Status).At(c.Profile, "terminate "+id)
	}
	op := "terminate " + id
	var one wireOneSession
	_, err = c.API.JSON(ctx, httpx.Request{Op: op, Method: http.MethodPost, Path: sessionPath(v.session.ID, "stop"), Query: c.teamQuery()}, &one)
	if err == nil {
		err = providers.CheckAnswerID(c.Profile, op, v.session.ID, one.Session.ID)
	}
	switch {
	case inTransition(err):
		return nil // it ends already
	case fault.KindOf(err) == fault.KindGone:
		return c.confirmGone(ctx, "terminate", id, v.session.ID, err)
	}
	return providers.EndFailed(err)
}

// confirmGone checks the 410 of a request against the session's own record: where that does
// not show an end, it is fault.KindUnavailable.
func (c *Client) confirmGone(ctx context.Context, op, id, sessionID string, gone error) error {
	var one wireOneSession
	err := c.getObject(ctx, op+" "+id, sessionPath(sessionID), &one)
	if wirekit.Missing(err) || (err == nil && sessionEnded(one.Session.Status)) {
		return gone
	}
	return c.Fault(fault.KindUnavailable, op+" "+id, "the API answers that the session has ended, but its record does not: %w", gone)
}

// unnamed is the error for a session whose sandbox is not known.
func (c *Client) unnamed(op string) error {
	return fault.New(fault.KindUnknown, "the API does not report which sandbox this session belongs to").At(c.Profile, op).
		WithHint("no sandbox has it as current session; `sbx ls --provider %s --all` lists the sandboxes", c.Profile)
}

// deleteSandbox deletes the name, unless it was resumed as another session. With insist the name is deleted that
// the session is known to have, though it was not found.
func (c *Client) deleteSandbox(ctx context.Context, id string, insist bool) error {
	op := "terminate " + id
	v, err := c.resolve(ctx, "terminate", id)
	if name := c.names.nameOf(id); insist && wirekit.Missing(err) && name != "" {
		v, err = view{box: &wireBox{Name: name, CurrentSessionID: id}, session: &wireSession{ID: id}}, nil
	}
	switch {
	case err != nil:
		return providers.NothingSent(err)
	case v.box == nil:
		return c.unnamed(op)
	case v.wasResumed() && !sessionEnded(v.box.Status):
		return fault.New(fault.KindRefused, "it was resumed as %s, which is %s", v.box.CurrentSessionID, v.box.Status).At(c.Profile, op).
			WithHint("inspect that one first: `sbx inspect %s/%s`", c.Profile, v.box.CurrentSessionID)
	}
	c.names.record(v.session.ID, v.box.Name)
	c.names.record(id, v.box.Name)
	var gone wireNamed
	_, err = c.API.JSON(ctx, httpx.Request{
		Op: op, Method: http.MethodDelete, Path: httpx.Path("v2", "sandboxes", v.box.Name), Query: c.teamQuery("projectId", c.project),
	}, &gone)
	switch {
	case fault.KindOf(err) == fault.KindGone:
		return c.confirmGone(ctx, "terminate", id, v.session.ID, err)
	case err != nil:
		return providers.EndFailed(err)
	}
	return providers.CheckAnswerID(c.Profile, op, v.box.Name, gone.Sandbox.Name)
}

// VerifyEnd reads the session once more; after a delete its name must be missing, too.
func (c *Client) VerifyEnd(ctx context.Context, id string, q providers.EndQuery) (providers.Proof, error) {
	if !q.Delete {
		return c.verifyStop(ctx, id)
	}
	name := c.names.nameOf(id)
	if name == "" {
		return providers.Proof{Ended: sandbox.Unknown, Reason: "it is no longer known which sandbox the session belonged to"}, nil
	}
	_, err := c.getByName(ctx, "verify "+id, name)
	switch {
	case err == nil:
		return providers.Proof{Ended: sandbox.False, Reason: "its name " + name + " still exists"}, nil
	case !wirekit.Missing(err):
		return providers.Proof{}, err
	}
	var one wireOneSession
	switch err := c.getObject(ctx, "verify "+id, sessionPath(id), &one); {
	case err != nil && !wirekit.Missing(err):
		return providers.Proof{}, err
	case err == nil && !sessionEnded(one.Session.Status):
		return providers.Proof{Ended: sandbox.False, Reason: "its session is still " + one.Session.Status}, nil
	}
	return c.endProof("name", name+" does not exist"), nil
}

func (c *Client) verifyStop(ctx context.Context, id string) (providers.Proof, error) {
	v, err := c.findSession(ctx, "verify", id)
	if wirekit.Missing(err) {
		v, err = c.currentSession(ctx, "verify", id, err)
	}
	switch {
	case wirekit.Missing(err):
		return c.endProof("session", "does not exist"), nil
	case err != nil:
		return providers.Proof{}, err
	case !sessionEnded(v.session.Status):
		return providers.Proof{Ended: sandbox.False, Reason: "its session is still " + v.session.Status}, nil
	}
	box, err := c.otherRecord(ctx, id, v)
	switch {
	case err != nil:
		return providers.Proof{}, err
	case box != nil && cmp.Or(box.CurrentSessionID, id) == id && !sessionEnded(box.Status):
		return providers.Proof{Ended: sandbox.False, Reason: "its session is " + v.session.Status + ", and its name " + box.Name + " shows it as " + box.Status}, nil
	}
	proof := c.endProof("session", v.session.Status)
	switch {
	case box == nil:
		proof.Evidence = append(proof.Evidence, c.Evidence("name", "no sandbox has it as current session", "API"))
	case box.CurrentSessionID != id && !sessionEnded(box.Status): // no part of the proof
		proof.Evidence = append(proof.Evidence, c.Evidence("name", "its name "+box.Name+" runs again as "+box.CurrentSessionID, "API"))
	default:
		proof.Evidence = append(proof.Evidence, c.Evidence("name", "its name "+box.Name+" is "+box.Status, "API"))
	}
	return proof, nil
}

// otherRecord is what the API says of a session beside its own record: the sandbox of its name, or its row in the
// list where the name is not known; nil = there is none.
func (c *Client) otherRecord(ctx context.Context, id string, v view) (*wireBox, error) {
	if v.box != nil {
		return v.box, nil
	}
	op := "verify " + id
	name, err := c.sandboxName(ctx, op, v.session)
	if err != nil || name == "" {
		return nil, err
	}
	named, err := c.getByName(ctx, op, name)
	if wirekit.Missing(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	named.Sandbox.Status = named.Session.Status
	return &named.Sandbox, err
}

// currentSession is the session of an id whose own record is missing, if its sandbox, where its name is known, still
// has it as the current one; else missing.
func (c *Client) currentSession(ctx context.Context, op, id string, missing error) (view, error) {
	name := c.names.nameOf(id)
	if name == "" {
		return view{}, missing
	}
	named, err := c.getByName(ctx, op+" "+id, name)
	if err == nil && named.Session.ID != id {
		err = missing
	}
	return view{&named.Sandbox, &named.Session}, err
}

func (c *Client) endProof(what, value string) providers.Proof {
	return providers.Proof{Ended: sandbox.True, Evidence: []sandbox.Evidence{c.Evidence(what, value, "API")}}
}
