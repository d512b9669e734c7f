package vercel

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/sandbox"
)

const (
	defaultTTL    = 10 * time.Minute       // a dead man's switch is always set
	createTimeout = 60 * time.Second       // a VM is placed before the API answers
	lookAgain     = 500 * time.Millisecond // while a VM starts (DESIGN section 3, Timers)
)

// Create starts a sandbox that keeps nothing when it stops, so that a stop leaves
// nothing that is billed, and its program where the spec has one. When the program
// cannot be started the sandbox is deleted again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	body, err := c.creation(spec)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	r := httpx.Request{Op: "create", Method: http.MethodPost, Path: "/v2/sandboxes", Query: c.scoped(), JSON: body, Timeout: createTimeout}
	if body.Runtime == "" {
		r.Path = "/v3/sandboxes"
	}
	var made wireNamed
	_, err = c.http.JSON(ctx, r, &made)
	if httpx.Status(err) == http.StatusConflict { // something on the way may have sent it twice, and the first made it
		if there, failed := c.named(ctx, "create", body.Name); failed == nil {
			made, err = there, nil
		} else if !missing(failed) {
			return sandbox.Sandbox{}, fault.New(fault.KindUnavailable, "%w; whether an earlier try has made it is not known: %w", err, failed).At(c.name, "create").
				WithHint("look for it with `sbx inspect %s/%s`", c.name, body.Name)
		}
	}
	if err == nil && made.Session.ID == "" {
		err = fault.New(fault.KindUnavailable, "the answer names no session").At(c.name, "create")
	}
	if err != nil {
		return sandbox.Sandbox{}, c.unsettled(err, body.Name)
	}
	if len(spec.Command) > 0 {
		if err := c.launch(ctx, &made.Session, spec); err != nil {
			return c.sandbox(view{&made.Sandbox, &made.Session}), c.undo(ctx, made.Session.ID, err)
		}
	}
	return c.sandbox(view{&made.Sandbox, &made.Session}), nil
}

func (c *Client) creation(spec sandbox.Spec) (wireCreate, error) {
	refuse := func(format string, args ...any) (wireCreate, error) {
		return wireCreate{}, fault.Usage(format, args...).At(c.name, "create")
	}
	ttl := spec.TTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	w := wireCreate{ProjectID: c.project, Name: unique(spec.Name), Timeout: ttl.Milliseconds(), Image: spec.Image}
	switch {
	case spec.DiskBytes > 0 || spec.PIDs > 0 || spec.Isolate != "":
		return refuse("--disk, --pids and --isolate cannot be set: the service decides them")
	case sources(spec) > 1:
		return refuse("--template, --image and --snapshot exclude each other: a sandbox begins with one of them")
	case spec.Snapshot != "":
		w.Source = &wireSource{"snapshot", spec.Snapshot}
	case spec.Template != "":
		w.Runtime = spec.Template
	case spec.Image == "":
		w.Runtime = c.runtime
	}
	var err error
	if w.Resources, err = cores(spec); err != nil {
		return refuse("%w", err)
	}
	if w.Tags, err = c.tagged(spec); err != nil {
		return wireCreate{}, err
	}
	if len(spec.Command) == 0 {
		w.Env = guest.Environment(spec.Env) // there is no program to hand it to
	}
	return w, nil
}

func sources(spec sandbox.Spec) (n int) {
	for _, s := range []string{spec.Template, spec.Image, spec.Snapshot} {
		if s != "" {
			n++
		}
	}
	return n
}

// perCore is the memory of a core; there is no other ratio (Vercel Sandbox
// documentation, Pricing and limits).
const perCore = 2048 * sandbox.MiB

// cores reads --cpu and --memory; nil leaves the choice to the service.
func cores(spec sandbox.Spec) (*wireResources, error) {
	if spec.CPU <= 0 && spec.MemoryBytes <= 0 {
		return nil, nil //nolint:nilnil // no wish is a plain answer
	}
	wanted := max(spec.CPU, float64(spec.MemoryBytes)/perCore)
	n := int(math.Ceil(wanted))
	fits := wanted == float64(n) && (spec.CPU <= 0 || spec.CPU == wanted) && (spec.MemoryBytes <= 0 || spec.MemoryBytes == int64(n)*perCore)
	if !fits {
		return nil, fmt.Errorf("there are whole cores only, each with 2048M of memory; the nearest that holds this is --cpu %d --memory %dM", n, n*2048)
	}
	return &wireResources{n}, nil
}

// unique makes a name that no other sandbox of the project has: the API wants
// that, and operators do not.
func unique(name string) string {
	safe := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	safe = strings.Trim(safe[:min(len(safe), 40)], "-")
	if safe == "" {
		safe = "sbx"
	}
	return safe + "-" + strings.ToLower(rand.Text()[:8])
}

// launch waits until the VM is there and starts the program, whose environment
// stands in that call and nowhere else.
func (c *Client) launch(ctx context.Context, w *wireSession, spec sandbox.Spec) error {
	waiting, cancel := context.WithTimeoutCause(ctx, createTimeout, fault.New(fault.KindUnavailable, "the VM did not start within %s", createTimeout))
	defer cancel()
	for w.Status == "pending" {
		if err := guest.Wait(waiting, lookAgain); err != nil {
			if ctx.Err() == nil {
				return context.Cause(waiting)
			}
			return err
		}
		var one wireOneSession
		if err := c.get(waiting, "create", session(w.ID), &one); err != nil {
			return err
		}
		if err := providers.About(c.name, "create", w.ID, one.Session.ID); err != nil {
			return err
		}
		*w = one.Session
	}
	sh := func(ctx context.Context, text string) ([]byte, int, error) { return c.shell(ctx, w.ID, text, spec.Env) }
	return guest.Start(ctx, sh, guest.Program{Args: spec.Command, Workdir: spec.Workdir})
}

// unsettled says of a failed create what it leaves open and how to find out.
func (c *Client) unsettled(err error, name string) error {
	switch status := httpx.Status(err); {
	case status == http.StatusPaymentRequired:
		return providers.NothingMade(fault.New(fault.KindRefused, "%w", err).At(c.name, "create").
			WithHint("the plan allows no more; `sbx ls --provider %s` shows what can be ended", c.name))
	case codeOf(err) == "snapshot_not_found":
		return providers.NothingMade(fault.New(fault.KindNotFound, "%w", err).At(c.name, "create").
			WithHint("the snapshot has expired or was deleted: create without --snapshot"))
	}
	return providers.CreateFailed(err, providers.CreateMark{Provider: c.name, Name: name})
}

// undo deletes a sandbox whose program could not be started.
func (c *Client) undo(ctx context.Context, id string, err error) error {
	end, cancel := guest.CleanupContext(ctx, httpx.DefaultTimeout)
	defer cancel()
	if undone := c.Terminate(end, id, providers.TerminateOptions{Delete: true}); undone != nil {
		return fault.Placed(fault.New(fault.KindOf(err), "%w; its sandbox %s still runs", err, id).WithHint("end it with `sbx terminate %s/%s`", c.name, id), c.name, "create")
	}
	return fault.Placed(fault.New(fault.KindOf(err), "%w; its sandbox was deleted again", err), c.name, "create")
}
