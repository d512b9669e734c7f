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
	"sbx/internal/sandbox"
)

// defaultTTL is the life of a sandbox that names none: the API's own default is
// 15 s. It is always set, as a dead man's switch.
const defaultTTL = 10 * time.Minute

// Create starts a sandbox and, where the spec has one, its program. When the
// program cannot be started the sandbox is ended again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	body, nonce, err := c.creation(spec)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	var made wireSandbox
	_, err = c.api.JSON(ctx, httpx.Request{Op: "create", Method: http.MethodPost, Path: "/sandboxes", JSON: body, Timeout: createTimeout}, &made)
	if httpx.Status(err) == http.StatusConflict {
		if made, err = c.marked(ctx, nonce, err); err != nil {
			return sandbox.Sandbox{}, err
		}
	}
	if err == nil && made.SandboxID == "" {
		err = fault.New(fault.KindUnavailable, "the answer names no sandbox").At(c.name, "create")
	}
	if err != nil {
		return sandbox.Sandbox{}, c.unsettled(err, nonce)
	}
	s := c.sandbox(made)
	if len(spec.Command) > 0 {
		if err := c.start(ctx, s.ID, spec); err != nil {
			return s, c.undo(ctx, s.ID, err)
		}
	}
	if got, err := c.Get(ctx, s.ID); err == nil {
		return got, nil
	}
	s.State = sandbox.StateProvisioning // it was made; how it stands is for the next look to say
	return s, nil
}

// createTimeout is longer than that of reads: placing a VM takes its time.
const createTimeout = 60 * time.Second

func (c *Client) creation(spec sandbox.Spec) (wireCreate, string, error) {
	for flag, given := range map[string]bool{
		"--memory": spec.MemoryBytes > 0, "--cpu": spec.CPU > 0, "--disk": spec.DiskBytes > 0, "--pids": spec.PIDs > 0,
		"--image": spec.Image != "", "--isolate": spec.Isolate != "",
	} {
		if given {
			return wireCreate{}, "", fault.Usage("%s cannot be set: the template decides it", flag).At(c.name, "create").
				WithHint("name a template with --template")
		}
	}
	labels := spec.CreateLabels()
	nonce := cmp.Or(labels[sandbox.LabelNonce], strings.ToLower(rand.Text()))
	labels[sandbox.LabelNonce] = nonce
	if len(spec.Command) > 0 {
		labels[sandbox.LabelRun] = guest.Main
	}
	ttl := spec.TTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	w := wireCreate{TemplateID: c.template, Timeout: int64((ttl + time.Second - 1) / time.Second), Secure: true, Metadata: labels}
	for _, template := range []string{spec.Snapshot, spec.Template} {
		if template != "" {
			w.TemplateID = template
		}
	}
	if w.TemplateID == "" {
		w.TemplateID = "base"
	}
	if len(spec.Command) == 0 {
		w.EnvVars = guest.Environment(spec.Env) // there is no program to hand it to
	}
	return w, nonce, nil
}

// unsettled says of a failed create what it leaves open and how to find out. A limit
// of the account is nothing to try again: it names no time.
func (c *Client) unsettled(err error, nonce string) error {
	if s := httpx.StatusOf(err); s != nil && s.Status == http.StatusTooManyRequests && s.RetryAfter == 0 {
		return providers.NothingMade(fault.New(fault.KindUnavailable, "%w", err).At(c.name, "create").
			WithHint("the account may hold no more sandboxes: `sbx ls --provider %s` shows what can be ended", c.name))
	}
	return providers.CreateFailed(err, providers.CreateMark{Provider: c.name, Nonce: nonce},
		"sandbox_no_compatible_node", "sandbox_capacity_unavailable")
}

// marked finds the sandbox that bears the mark of a create which was answered with a
// conflict: something on the way may have sent it twice, and the first made it.
func (c *Client) marked(ctx context.Context, nonce string, conflict error) (wireSandbox, error) {
	for s, err := range c.List(ctx, providers.Query{Labels: map[string]string{sandbox.LabelNonce: nonce}}) {
		switch {
		case err != nil:
			return wireSandbox{}, fault.New(fault.KindUnavailable, "%w; whether an earlier try has made it is not known: %w", conflict, err).At(c.name, "create").
				WithHint("look for it with `sbx ls --provider %s --label %s=%s`", c.name, sandbox.LabelNonce, nonce)
		case s.Labels[sandbox.LabelNonce] == nonce:
			return c.detail(ctx, s.ID)
		}
	}
	return wireSandbox{}, c.unsettled(conflict, nonce)
}

// start runs the spec's program, with its environment in the call and nowhere
// else.
func (c *Client) start(ctx context.Context, id string, spec sandbox.Spec) error {
	sh := func(ctx context.Context, text string) ([]byte, int, error) { return c.shell(ctx, id, text, spec.Env) }
	return guest.Start(ctx, sh, guest.Program{Args: spec.Command, Workdir: spec.Workdir})
}

// undo ends a sandbox whose program could not be started.
func (c *Client) undo(ctx context.Context, id string, err error) error {
	end, cancel := guest.CleanupContext(ctx, httpx.DefaultTimeout)
	defer cancel()
	if undone := c.Terminate(end, id, providers.TerminateOptions{Delete: true}); undone != nil {
		return fault.Placed(fault.New(fault.KindOf(err), "%w; its sandbox %s still runs", err, id).
			WithHint("end it with `sbx terminate %s/%s`", c.name, id), c.name, "create")
	}
	return fault.Placed(fault.New(fault.KindOf(err), "%w; its sandbox was ended again", err), c.name, "create")
}
