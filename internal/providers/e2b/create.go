package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Create starts a sandbox and, where the spec has one, its program. When the
// program cannot be started the sandbox is ended again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := providers.CheckText(nil, spec.Env); err != nil {
		return sandbox.Sandbox{}, fault.Placed(err, c.Profile, "create")
	}
	body, err := c.createBody(spec)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	mark := providers.CreateMark{Provider: c.Profile, Nonce: body.Metadata[sandbox.LabelNonce]}
	var made wireSandbox
	_, err = c.API.JSON(ctx, httpx.Request{Op: "create", Method: http.MethodPost, Path: "/sandboxes", JSON: body, Timeout: createTimeout}, &made)
	if httpx.Status(err) == http.StatusConflict {
		if made, err = c.findByNonce(ctx, mark, err); err != nil {
			return sandbox.Sandbox{}, err
		}
	}
	if err == nil && made.SandboxID == "" {
		err = c.Fault(fault.KindUnavailable, "create", "the answer names no sandbox")
	}
	if err != nil {
		return sandbox.Sandbox{}, c.createFault(err, mark)
	}
	s := c.sandbox(made)
	if len(spec.Command) > 0 {
		// The environment is part of this call only.
		if err := guest.Start(ctx, c.shellOf(s.ID, spec.Env), guest.Program{Args: spec.Command, Workdir: spec.Workdir}); err != nil {
			return s, wirekit.UndoCreate(ctx, c, s.ID, err, "ended", "")
		}
	}
	if got, err := c.Get(ctx, s.ID); err == nil {
		return got, nil
	}
	s.State = sandbox.StateProvisioning // it was made; the next read shows its state
	return s, nil
}

// createTimeout includes the placement of a VM.
const createTimeout = 60 * time.Second

func (c *Client) createBody(spec sandbox.Spec) (wireCreate, error) {
	for flag, given := range map[string]bool{
		"--memory": spec.MemoryBytes > 0, "--cpu": spec.CPU > 0, "--disk": spec.DiskBytes > 0, "--pids": spec.PIDs > 0,
		"--image": spec.Image != "", "--isolate": spec.Isolate != "",
	} {
		if given {
			return wireCreate{}, fault.Usage("%s cannot be set: the template sets it", flag).At(c.Profile, "create").
				WithHint("name a template with --template")
		}
	}
	labels := spec.CreateLabels()
	labels[sandbox.LabelNonce] = cmp.Or(labels[sandbox.LabelNonce], strings.ToLower(rand.Text()))
	if len(spec.Command) > 0 {
		labels[sandbox.LabelRun] = guest.MainTag
	}
	ttl := wirekit.TTL(spec.TTL)
	w := wireCreate{
		TemplateID: cmp.Or(spec.Template, spec.Snapshot, c.template, "base"),
		Timeout:    int64((ttl + time.Second - 1) / time.Second), Secure: true, Metadata: labels,
	}
	if len(spec.Command) == 0 {
		w.EnvVars = wirekit.Environment(spec.Env) // there is no program to give it to
	}
	return w, nil
}

// createFault is the error of a create that failed. A 429 without a time is the limit of the
// account, which a retry does not change.
func (c *Client) createFault(err error, mark providers.CreateMark) error {
	if s := httpx.StatusOf(err); s != nil && s.Status == http.StatusTooManyRequests && s.RetryAfter == 0 {
		return providers.NothingMade(c.Fault(fault.KindUnavailable, "create", "%w", err).
			WithHint("the account has no free sandbox: `sbx ls --provider %s` lists candidates to terminate", c.Profile))
	}
	return providers.CreateFailed(err, mark, "sandbox_no_compatible_node", "sandbox_capacity_unavailable")
}

// findByNonce finds the sandbox of a create that was answered with a conflict: a proxy may
// have sent the request twice, and the first one made the sandbox.
func (c *Client) findByNonce(ctx context.Context, mark providers.CreateMark, conflict error) (wireSandbox, error) {
	for s, err := range c.List(ctx, providers.Query{Labels: map[string]string{sandbox.LabelNonce: mark.Nonce}}) {
		switch {
		case err != nil:
			return wireSandbox{}, wirekit.ConflictUnsettled(conflict, err, mark)
		case s.Labels[sandbox.LabelNonce] == mark.Nonce:
			return c.detail(ctx, s.ID)
		}
	}
	return wireSandbox{}, c.createFault(conflict, mark)
}
