package vercel

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// view is what the two objects say of one sandbox; either may be missing.
type view struct {
	box     *wireBox
	session *wireSession
}

// persistent is what the API takes for granted where nothing is said.
func (v view) persistent() bool {
	return v.box == nil || v.box.Persistent == nil || *v.box.Persistent
}

// ours says that sbx has made it, or that somebody says so.
func (v view) ours() bool { return v.box != nil && v.box.Tags[spellings()[sandbox.LabelOwner]] != "" }

// judged finds the session that an id means: a session's own, also one of the
// first API, whose ids have this form; or a name's current one.
func (c *Client) judged(ctx context.Context, op, id string) (view, error) {
	var one wireOneSession
	err := c.get(ctx, op+" "+id, session(id), &one)
	switch {
	case fault.KindOf(err) == fault.KindNotFound, httpx.Status(err) == http.StatusBadRequest: // a name has not the form of an id
		named, err := c.named(ctx, op+" "+id, id)
		return view{&named.Sandbox, &named.Session}, err
	case err != nil:
		return view{}, err
	}
	return view{session: &one.Session}, providers.About(c.name, op+" "+id, id, one.Session.ID)
}

// resolve is judged with the sandbox of the session. A session whose name is
// deleted is fault.KindGone.
func (c *Client) resolve(ctx context.Context, op, id string) (view, error) {
	v, err := c.judged(ctx, op, id)
	if err != nil || v.box != nil {
		return v, err
	}
	name, err := c.nameOf(ctx, op+" "+id, v.session)
	if err != nil || name == "" {
		return v, err
	}
	named, err := c.named(ctx, op+" "+id, name)
	switch {
	case missing(err):
		return v, fault.New(fault.KindGone, "its sandbox %s is deleted", name).At(c.name, op+" "+id)
	case err != nil:
		return v, err
	}
	v.box = &named.Sandbox
	return v, nil
}

// named reads a sandbox by name. It never sends resume: that would start a VM.
func (c *Client) named(ctx context.Context, op, name string) (wireNamed, error) {
	var n wireNamed
	_, err := c.http.JSON(ctx, httpx.Request{Op: op, Path: httpx.Path("v2", "sandboxes", name), Query: c.scoped("projectId", c.project)}, &n)
	if err != nil {
		return n, err
	}
	n.Session.ID, n.Session.Status = cmp.Or(n.Session.ID, n.Sandbox.CurrentSessionID), cmp.Or(n.Session.Status, n.Sandbox.Status)
	if n.Session.ID == "" || n.Sandbox.Name == "" {
		return n, fault.New(fault.KindUnavailable, "the answer names no sandbox").At(c.name, op)
	}
	c.names.note(n.Session.ID, n.Sandbox.Name)
	return n, providers.About(c.name, op, name, n.Sandbox.Name)
}

// TakesName is true for every word that is no session's id: judged looks for a name
// where there is no such session.
func (*Client) TakesName(word string) bool {
	return !strings.HasPrefix(word, "sbx_")
}

// Get reads one by the id of its session, or by its name.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	v, err := c.resolve(ctx, "get", id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(v), nil
}

// sandbox says in our words what the API said.
//
// Ages are those of a run. CreatedAt stays empty: what the API calls so belongs to
// the name, and a resume would make a VM of a minute look weeks old. StartedAt is
// the session's own start; a row of the list has none, so it is the last change of
// its status there, which is never before the start. For one that runs that is the
// same moment; for any other an age in a list is the least that it can be.
func (c *Client) sandbox(v view) sandbox.Sandbox {
	s := sandbox.Sandbox{Provider: c.name, ProviderType: TypeName, Activity: sandbox.Unknown}
	if v.session != nil {
		v.session.fill(&s)
	}
	if v.box != nil {
		v.box.fill(&s, v.session)
	}
	s.State = stateOf(s.RawState, v.persistent())
	if over(s.RawState) {
		s.ExpiresAt = time.Time{}
		s.Exit = sessionExit(s.RawState, v.session, s.EndedAt)
	}
	return s
}

// fill adds what the session says.
func (w *wireSession) fill(s *sandbox.Sandbox) {
	s.ID, s.Name, s.RawState, s.Template = w.ID, w.SourceSandboxName, w.Status, w.Runtime
	s.StartedAt, s.EndedAt, s.ExpiresAt = w.started(), w.ended(), w.deadline()
	s.Limits = limits(w.VCPUs, w.Memory)
}

// fill adds what the name says, and where no session is known what it says of its
// current one.
func (b *wireBox) fill(s *sandbox.Sandbox, w *wireSession) {
	s.Labels = labels(b.Tags)
	s.TaskID, s.AgentType = s.Labels[sandbox.LabelTask], s.Labels[sandbox.LabelAgentType]
	s.Name = cmp.Or(s.Labels[sandbox.LabelName], b.Name)
	s.Template = cmp.Or(b.Image, b.Runtime, s.Template)
	if w != nil {
		return
	}
	s.ID, s.RawState = cmp.Or(b.CurrentSessionID, b.Name), b.Status
	s.StartedAt, s.ExpiresAt = b.StatusUpdatedAt.time(), b.ExpiresAt.time()
	if over(b.Status) {
		s.EndedAt = b.StatusUpdatedAt.time()
	}
	s.Limits = limits(b.VCPUs, b.Memory)
}

// stateOf: a stopped sandbox that keeps a snapshot may be resumed, any other one
// has ended.
func stateOf(status string, persistent bool) sandbox.State {
	switch status {
	case "pending":
		return sandbox.StateProvisioning
	case "running":
		return sandbox.StateRunning
	case "stopping", "snapshotting":
		return sandbox.StateTerminating
	case "stopped":
		if persistent {
			return sandbox.StateStopped
		}
		return sandbox.StateTerminated
	case "failed", "aborted":
		return sandbox.StateFailed
	}
	return sandbox.StateUnknown
}

// over says that a session of this status runs no more and never will.
func over(status string) bool {
	return status == "stopped" || status == "failed" || status == "aborted"
}

func limits(vcpus, memory *float64) sandbox.Limits {
	l := sandbox.Limits{CPU: vcpus, Isolation: "microVM"}
	if memory != nil && *memory > 0 && *memory < 1<<32 {
		l.MemoryBytes = new(int64(*memory) * sandbox.MiB)
	}
	return l
}
