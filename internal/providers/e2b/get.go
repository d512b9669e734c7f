package e2b

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
)

// Get reads one by id. A missing one is fault.KindNotFound: the API answers alike for an
// unknown id, for an ended sandbox and for one of another team.
func (c *Client) Get(ctx context.Context, id string) (sandbox.Sandbox, error) {
	w, err := c.detail(ctx, id)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	return c.sandbox(w), nil
}

// detail reads the record, which has the token of the sandbox's host.
func (c *Client) detail(ctx context.Context, id string) (wireSandbox, error) {
	var w wireSandbox
	_, err := c.API.JSON(ctx, httpx.Request{Op: "get " + id, Path: httpx.Path("sandboxes", id)}, &w)
	switch {
	case err != nil:
		return w, err
	case !c.SameID(id, c.idOf(w)):
		return wireSandbox{}, providers.CheckAnswerID(c.Profile, "get "+id, id, w.SandboxID)
	case w.Domain != "":
		c.domains.Store(id, w.Domain)
	}
	return w, nil
}

// SameID accepts both spellings of an old id, with the client's id and without, as the API
// does.
func (c *Client) SameID(a, b string) bool {
	shortA, _, longA := strings.Cut(a, "-")
	shortB, _, longB := strings.Cut(b, "-")
	return a == b || longA != longB && shortA == shortB
}

// idOf is the id of a row: in two parts in domains with such ids.
func (c *Client) idOf(w wireSandbox) string {
	if c.legacy && w.ClientID != "" && !strings.HasSuffix(w.SandboxID, "-"+w.ClientID) {
		return w.SandboxID + "-" + w.ClientID
	}
	return w.SandboxID
}

// sandbox converts a record of the API. startedAt is the start of the current run: a resume
// sets it again. endAt of a paused sandbox is the time of its pause and no expiry.
func (c *Client) sandbox(w wireSandbox) sandbox.Sandbox {
	s := sandbox.Sandbox{
		Provider: c.Profile, ProviderType: c.TypeName, ID: c.idOf(w), RawState: w.State,
		StartedAt: providers.ValidTime(w.StartedAt), Template: cmp.Or(w.Alias, w.TemplateID), Labels: w.Metadata,
		Name: w.Metadata[sandbox.LabelName], TaskID: w.Metadata[sandbox.LabelTask], AgentType: w.Metadata[sandbox.LabelAgentType],
		Activity: sandbox.Unknown,
	}
	switch w.State {
	case "running":
		s.State, s.ExpiresAt = sandbox.StateRunning, providers.ValidTime(w.EndAt)
	case "paused":
		s.State = sandbox.StatePaused
	default:
		s.State = sandbox.StateUnknown
	}
	s.Limits = sandbox.Limits{CPU: w.CPUCount, MemoryBytes: mebibytes(w.MemoryMB), DiskBytes: mebibytes(w.DiskSizeMB), Isolation: "microVM"}
	return s
}

// mebibytes converts MiB to bytes; nil for none and for a value out of range.
func mebibytes(n *int64) *int64 {
	if n == nil || *n <= 0 || *n > 1<<32 {
		return nil
	}
	return new(*n * sandbox.MiB)
}

// envdPort is the port of envd in every sandbox.
const envdPort = 49983

// toHost addresses a request to envd of one sandbox.
func (c *Client) toHost(r httpx.Request, id, token string) httpx.Request {
	if c.sandboxURL == "" {
		domain := c.domain
		if own, ok := c.domains.Load(id); ok {
			domain, _ = own.(string)
		}
		host := strconv.Itoa(envdPort) + "-" + id + "." + domain
		if hasSharedHost(domain) {
			host = "sandbox." + domain
		}
		r.URL = "https://" + host + r.Path
	}
	h := http.Header{}
	maps.Copy(h, r.Header)
	h.Set(c.dialect.header+"-Sandbox-Id", id)
	h.Set(c.dialect.header+"-Sandbox-Port", strconv.Itoa(envdPort))
	if token != "" {
		h.Set("X-Access-Token", token)
	}
	r.Header, r.OneSandbox = h, true
	return r
}
