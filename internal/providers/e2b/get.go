package e2b

import (
	"context"
	"strings"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Get reads one by id. A missing one is fault.KindNotFound: the API says the
// same of what never was, of what has ended, and of another team's.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	w, err := c.detail(ctx, id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(w), nil
}

// detail is Get with what only this room needs: the token of the sandbox's host.
func (c *Client) detail(ctx context.Context, id string) (wireSandbox, error) {
	var w wireSandbox
	_, err := c.api.JSON(ctx, httpx.Request{Op: "get " + id, Path: httpx.Path("sandboxes", id)}, &w)
	switch {
	case err != nil:
		return w, err
	case !c.SameID(id, c.idOf(w)):
		return wireSandbox{}, providers.About(c.name, "get "+id, id, w.SandboxID)
	case w.Domain != "":
		c.domains.Store(id, w.Domain)
	}
	return w, nil
}

// SameID takes both spellings of an old id: with its client's, and without, as the
// API does.
func (c *Client) SameID(a, b string) bool {
	short, _, two := strings.Cut(a, "-")
	other, _, both := strings.Cut(b, "-")
	return a == b || two != both && short == other
}

// idOf is the id of a row: in two parts where the domain wants both.
func (c *Client) idOf(w wireSandbox) string {
	if c.legacy && w.ClientID != "" && !strings.HasSuffix(w.SandboxID, "-"+w.ClientID) {
		return w.SandboxID + "-" + w.ClientID
	}
	return w.SandboxID
}

// sandbox says in our words what the API said. startedAt is the start of the
// current run, not of the sandbox: a resumed one begins anew. endAt of a paused
// one is the time of its pause, not an expiry.
func (c *Client) sandbox(w wireSandbox) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: c.name, ProviderType: c.dialect.name, ID: c.idOf(w), RawState: w.State,
		StartedAt: providers.Moment(w.StartedAt), Template: w.Alias, Labels: w.Metadata,
		Name: w.Metadata[sandbox.LabelName], TaskID: w.Metadata[sandbox.LabelTask], AgentType: w.Metadata[sandbox.LabelAgentType],
		Activity: sandbox.Unknown,
	}
	if s.Template == "" {
		s.Template = w.TemplateID
	}
	switch w.State {
	case "running":
		s.State, s.ExpiresAt = sandbox.StateRunning, providers.Moment(w.EndAt)
	case "paused":
		s.State = sandbox.StatePaused
	default:
		s.State = sandbox.StateUnknown
	}
	s.Limits = sandbox.Limits{CPU: w.CPUCount, MemoryBytes: mebibytes(w.MemoryMB), DiskBytes: mebibytes(w.DiskSizeMB), Isolation: "microVM"}
	return s
}

// mebibytes is a number of MiB in bytes; nil for none and for nonsense.
func mebibytes(n *int64) *int64 {
	if n == nil || *n <= 0 || *n > 1<<32 {
		return nil
	}
	return new(*n * sandbox.MiB)
}
