package vercel

import (
	"context"
	"maps"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/sandbox"
)

// What sbx writes into a sandbox's tags, of which there are five at most.
const (
	tagName  = "sbx-name"
	tagTask  = "sbx-task"
	tagAgent = "sbx-agent-type"
	tagRun   = "sbx-run" // the tag of the program that create started
	mostTags = 5
)

// view is what the two objects say of one sandbox; either may be missing.
type view struct {
	box     *wireBox
	session *wireSession
}

// resolve finds what an id means: a session, or a name's current one. A session
// whose name is deleted is gone.
func (c *Client) resolve(ctx context.Context, op, id string) (view, error) {
	var one wireSession1
	_, err := c.http.JSON(ctx, httpx.Request{Op: op + " " + id, Path: session(id), Query: c.scoped()}, &one)
	switch kind := fault.KindOf(err); {
	case kind == fault.KindNotFound:
		named, err := c.named(ctx, op, id)
		if err != nil {
			return view{}, err
		}
		return view{&named.Sandbox, &named.Session}, nil
	case err != nil:
		return view{}, err
	case one.Session.ID == "":
		return view{}, fault.New(fault.KindUnavailable, "the answer names no session").At(c.name, op+" "+id)
	}
	v := view{session: &one.Session}
	if name := one.Session.SourceSandboxName; name != "" {
		named, err := c.named(ctx, op, name)
		switch kind := fault.KindOf(err); {
		case kind == fault.KindNotFound, kind == fault.KindGone:
			return v, fault.New(fault.KindGone, "its sandbox %s is deleted", name).At(c.name, op+" "+id)
		case err != nil:
			return v, err
		}
		v.box = &named.Sandbox
	}
	return v, nil
}

// named reads a sandbox by name. It never sends resume: that would start a VM.
func (c *Client) named(ctx context.Context, op, name string) (wireNamed, error) {
	var n wireNamed
	_, err := c.http.JSON(ctx, httpx.Request{Op: op + " " + name, Path: httpx.Path("v2", "sandboxes", name), Query: c.scoped("projectId", c.project)}, &n)
	if err == nil && n.Session.ID == "" {
		n.Session.ID, n.Session.Status = n.Sandbox.CurrentSessionID, n.Sandbox.Status
	}
	return n, err
}

// Get reads one by the id of its session, or by its name.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	v, err := c.resolve(ctx, "get", id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(v), nil
}

// sandbox says in our words what the API said. A resumed sandbox keeps the
// creation time of its name, so the age of what runs is counted from the start of
// its session.
func (c *Client) sandbox(v view) sandbox.Sandbox {
	s := sandbox.Sandbox{Provider: c.name, ProviderType: TypeName, Activity: sandbox.Unknown}
	persistent := true
	if b := v.box; b != nil {
		s.ID, s.Name, s.RawState, s.Labels = b.CurrentSessionID, b.Name, b.Status, maps.Clone(b.Tags)
		s.CreatedAt, s.StartedAt, s.ExpiresAt = b.CreatedAt.time(), b.StatusUpdatedAt.time(), b.ExpiresAt.time()
		s.TaskID, s.AgentType = b.Tags[tagTask], b.Tags[tagAgent]
		s.Template = either(b.Image, b.Runtime)
		s.Limits = limits(b.VCPUs, b.Memory)
		if own := b.Tags[tagName]; own != "" {
			s.Name = own
		}
		persistent = b.Persistent == nil || *b.Persistent
	}
	if w := v.session; w != nil {
		s.ID, s.RawState, s.StartedAt, s.EndedAt = w.ID, w.Status, w.StartedAt.time(), w.ended()
		s.ExpiresAt = w.deadline()
		if v.box == nil {
			s.Name, s.CreatedAt, s.Template = w.SourceSandboxName, w.CreatedAt.time(), w.Runtime
			s.Limits = limits(w.VCPUs, w.Memory)
		}
	}
	s.State = stateOf(s.RawState, persistent)
	if s.State == sandbox.StateRunning || s.State == sandbox.StateTerminating {
		s.CreatedAt = time.Time{}
	} else {
		s.StartedAt, s.ExpiresAt = time.Time{}, time.Time{}
	}
	if s.State == sandbox.StateFailed {
		s.Exit = failed(v.session)
	}
	return s
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

func limits(vcpus, memory *float64) sandbox.Limits {
	l := sandbox.Limits{CPU: vcpus, Isolation: "microVM"}
	if memory != nil && *memory > 0 && *memory < 1<<32 {
		l.MemoryBytes = new(int64(*memory) * sandbox.MiB)
	}
	return l
}

func (w *wireSession) ended() time.Time {
	if at := w.StoppedAt.time(); !at.IsZero() {
		return at
	}
	return w.AbortedAt.time()
}

// deadline is when the session ends by itself.
func (w *wireSession) deadline() time.Time {
	started := w.StartedAt.time()
	if started.IsZero() || w.Timeout <= 0 || w.Timeout > 4e12 {
		return time.Time{}
	}
	return started.Add(time.Duration(w.Timeout) * time.Millisecond)
}

// over says that a session runs no more and never will.
func (w *wireSession) over() bool {
	return w.Status == "stopped" || w.Status == "failed" || w.Status == "aborted"
}

// failed is the exit of a session that did not end well.
func failed(w *wireSession) *sandbox.Exit {
	if w == nil {
		return nil
	}
	return &sandbox.Exit{
		Raw: w.Status, Class: sandbox.ClassInfra, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown,
		Evidence: []sandbox.Evidence{{What: "session status", Value: w.Status, Source: "API", At: w.ended()}},
	}
}
