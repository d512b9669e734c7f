package vercel

import (
	"context"
	"crypto/rand"
	"maps"
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
	defaultTTL    = 10 * time.Minute // a dead man's switch is always set
	createTimeout = 60 * time.Second // a VM is placed before the API answers
	perCore       = 2048 * sandbox.MiB
)

// Create starts a sandbox that keeps nothing when it stops, and its program where
// the spec has one. When the program cannot be started it is deleted again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	body, err := c.creation(spec)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	r := httpx.Request{Op: "create", Method: http.MethodPost, Path: "/v2/sandboxes", Query: c.scoped(), JSON: body, Timeout: createTimeout}
	if body.Image != "" {
		r.Path = "/v3/sandboxes"
	}
	var made wireNamed
	if _, err := c.http.JSON(ctx, r, &made); err != nil {
		return sandbox.Sandbox{}, c.unsettled(err, body.Name)
	}
	v := view{&made.Sandbox, &made.Session}
	s := c.sandbox(v)
	if len(spec.Command) == 0 {
		return s, nil
	}
	sh := func(ctx context.Context, text string) ([]byte, int, error) { return c.shell(ctx, s.ID, text, spec.Env) }
	if err := guest.Start(ctx, sh, guest.Program{Args: spec.Command, Workdir: spec.Workdir}); err != nil {
		return s, c.undo(ctx, s.ID, err)
	}
	return s, nil
}

func (c *Client) creation(spec sandbox.Spec) (wireCreate, error) {
	refuse := func(format string, args ...any) (wireCreate, error) {
		return wireCreate{}, fault.Usage(format, args...).At(c.name, "create")
	}
	ttl := spec.TTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	w := wireCreate{
		ProjectID: c.project, Name: unique(spec.Name), Timeout: ttl.Milliseconds(), Runtime: "node24", Image: spec.Image, Tags: map[string]string{},
	}
	switch {
	case spec.DiskBytes > 0 || spec.PIDs > 0 || spec.Isolate != "":
		return refuse("--disk, --pids and --isolate cannot be set: the service decides them")
	case spec.Image != "":
		w.Runtime = ""
	case spec.Snapshot != "":
		w.Source = &wireSource{"snapshot", spec.Snapshot}
	case spec.Template != "":
		w.Runtime = spec.Template
	}
	if spec.CPU > 0 || spec.MemoryBytes > 0 {
		cores := max(spec.CPU, float64(spec.MemoryBytes)/perCore)
		if cores != math.Trunc(cores) || (spec.CPU > 0 && spec.MemoryBytes > 0 && spec.MemoryBytes != int64(spec.CPU)*perCore) {
			return refuse("a core has 2048M of memory, whole cores only; the nearest is --cpu %d", int(math.Ceil(cores)))
		}
		w.Resources = &wireResources{int(cores)}
	}
	maps.Copy(w.Tags, spec.Labels)
	for key, value := range map[string]string{tagName: spec.Name, tagTask: spec.TaskID, tagAgent: spec.AgentType, tagRun: run(spec)} {
		if value != "" {
			w.Tags[key] = value
		}
	}
	if len(w.Tags) > mostTags {
		return refuse("a sandbox has %d tags at most, and these are %d: labels, name, task, agent type and program count", mostTags, len(w.Tags))
	}
	if len(spec.Command) == 0 {
		w.Env = guest.Environment(spec.Env) // there is no program to hand it to
	}
	return w, nil
}

func run(spec sandbox.Spec) string {
	if len(spec.Command) > 0 {
		return guest.Main
	}
	return ""
}

// unique makes a name that no other sandbox of the project has: the API wants
// that, and operators do not.
func unique(name string) string {
	if name == "" {
		name = "sbx"
	}
	safe := strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return strings.Trim(safe[:min(len(safe), 40)], "-") + "-" + strings.ToLower(rand.Text()[:8])
}

// unsettled adds to an error that leaves the outcome open how to find out.
func (c *Client) unsettled(err error, name string) error {
	switch status := httpx.Status(err); {
	case status == http.StatusPaymentRequired:
		return fault.New(fault.KindRefused, "%w", err).WithHint("the plan allows no more; `sbx ls --provider %s` shows what can be ended", c.name)
	case fault.KindOf(err) == fault.KindUnavailable && !httpx.NotSent(err) && status != http.StatusTooManyRequests:
		return fault.New(fault.KindUnavailable, "%w; it may have been created all the same", err).WithHint("look for it with `sbx inspect %s/%s`", c.name, name)
	}
	return err
}

// undo deletes a sandbox whose program could not be started.
func (c *Client) undo(ctx context.Context, id string, err error) error {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpx.DefaultTimeout)
	defer cancel()
	if undone := c.Terminate(end, id, providers.TerminateOptions{Delete: true}); undone != nil {
		return c.at(fault.New(fault.KindOf(err), "%w; its sandbox %s still runs", err, id).WithHint("end it with `sbx terminate %s/%s`", c.name, id), "create")
	}
	return c.at(fault.New(fault.KindOf(err), "%w; its sandbox was deleted again", err), "create")
}
