package daytona

import (
	"cmp"
	"context"
	"crypto/rand"
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
	createTimeout = 60 * time.Second // the API waits up to 30 s for `started`
	startsWithin  = 5 * time.Minute  // how long a program waits for its sandbox
	gibibyte      = 1024 * sandbox.MiB
)

// Create starts a sandbox and, where the spec has one, its program. When the
// program cannot be started the sandbox is deleted again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	body, err := c.creation(spec)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	made, err := c.ask(ctx, body)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	s := c.sandbox(made)
	if len(spec.Command) == 0 {
		return s, nil
	}
	if s, err = c.started(ctx, s); err == nil {
		err = guest.Start(ctx, c.shellOf(s.ID, spec.Env, false), guest.Program{Args: spec.Command, Workdir: spec.Workdir})
	}
	if err != nil {
		return s, c.undo(ctx, s.ID, err)
	}
	return s, nil
}

// ask makes the sandbox.
func (c *Client) ask(ctx context.Context, body wireCreate) (wireSandbox, error) {
	var made wireSandbox
	nonce := body.Labels[sandbox.LabelNonce]
	_, err := c.http.JSON(ctx, httpx.Request{Op: "create", Method: http.MethodPost, Path: "/sandbox", JSON: body, Timeout: createTimeout}, &made)
	if httpx.Status(err) == http.StatusConflict || failedToStart(err) {
		found, there, failed := c.marked(ctx, nonce)
		switch {
		case there && failedToStart(err):
			return found, c.undo(ctx, found.ID, fault.New(fault.KindLauncher, "%w", err).At(c.name, "create"))
		case there:
			return found, nil
		case failed != nil: // it may be there
			return made, fault.New(fault.KindUnavailable, "%w; whether an earlier try has made it is not known: %w", err, failed).At(c.name, "create").
				WithHint("look for it with `sbx ls --provider %s --label %s=%s`", c.name, sandbox.LabelNonce, nonce)
		}
	}
	if err == nil && made.ID == "" {
		err = fault.New(fault.KindUnavailable, "the answer names no sandbox").At(c.name, "create")
	}
	if failedToStart(err) { // the listing lags: what failed may be there and is billed
		return made, fault.New(fault.KindUnavailable, "%w; the sandbox that failed may be there", err).At(c.name, "create").
			WithHint("look for it with `sbx ls --all --provider %s --label %s=%s`", c.name, sandbox.LabelNonce, nonce)
	}
	if err != nil {
		return made, c.unsettled(err, nonce)
	}
	return made, nil
}

// failedToStart says that the platform made the sandbox and saw it fail while it
// waited for the start (Daytona, create: 400 "Sandbox failed to start: ...").
func failedToStart(err error) bool {
	s := httpx.StatusOf(err)
	return s != nil && s.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(s.Message), "failed to start")
}

// started waits until a sandbox runs.
func (c *Client) started(ctx context.Context, s sandbox.Sandbox) (sandbox.Sandbox, error) {
	ctx, cancel := context.WithTimeout(ctx, startsWithin)
	defer cancel()
	for pause := 100 * time.Millisecond; s.State != sandbox.StateRunning; pause = min(2*pause, 2*time.Second) {
		if !transitional(s.State) {
			return s, fault.New(fault.KindLauncher, "it came to be %s", s.RawState)
		}
		if err := guest.Wait(ctx, pause); err != nil {
			return s, err
		}
		now, err := c.Get(ctx, s.ID)
		if err != nil {
			return s, err
		}
		s = now
	}
	return s, nil
}

func (c *Client) creation(spec sandbox.Spec) (wireCreate, error) {
	refuse := func(text string) (wireCreate, error) {
		return wireCreate{}, fault.Usage("%s", text).At(c.name, "create")
	}
	ttl := spec.TTL
	if ttl <= 0 {
		ttl = defaultTTL
	}
	nonce := strings.ToLower(rand.Text())
	// A sandbox in which nobody calls the toolbox counts as idle, however hard its
	// program works, and looks of sbx's own are no activity: with the service's 15
	// minutes it would be stopped in the middle of a longer run. So it is allowed to be
	// idle for its whole life. Never would be one limit less: should the end of its life
	// be lost, a sandbox that is left alone still stops.
	minutes := int(math.Ceil(ttl.Minutes()))
	w := wireCreate{Target: c.target, TTLMinutes: minutes, AutoStop: minutes, Labels: spec.CreateLabels(), Snapshot: spec.Snapshot}
	if w.Snapshot == "" {
		w.Snapshot = spec.Template
	}
	switch {
	case spec.PIDs > 0 || spec.Isolate != "":
		return refuse("--pids and --isolate cannot be set: the service decides them")
	case spec.Image != "" && w.Snapshot != "":
		return refuse("an image and a snapshot exclude each other")
	case spec.Image != "":
		w.BuildInfo = &wireBuild{"FROM " + spec.Image + "\n"}
	case spec.CPU > 0 || spec.MemoryBytes > 0 || spec.DiskBytes > 0:
		return refuse("cpu, memory and disk are those of the snapshot; name an --image to choose them")
	}
	if spec.CPU != math.Trunc(spec.CPU) || spec.MemoryBytes%gibibyte != 0 || spec.DiskBytes%gibibyte != 0 {
		return refuse("cpu, memory and disk are whole cores and whole gigabytes here")
	}
	w.CPU, w.Memory, w.Disk = int(spec.CPU), int(spec.MemoryBytes/gibibyte), int(spec.DiskBytes/gibibyte)
	w.Labels[sandbox.LabelNonce] = cmp.Or(w.Labels[sandbox.LabelNonce], nonce)
	if spec.Name != "" {
		w.Name = spec.Name + "-" + nonce[:8] // names are unique in an organization
	}
	if len(spec.Command) > 0 {
		w.Labels[sandbox.LabelRun] = guest.Main
	} else {
		w.Env = guest.Environment(spec.Env) // there is no program to hand it to
	}
	return w, nil
}

// unsettled says of a failed create what it leaves open and how to find out.
func (c *Client) unsettled(err error, nonce string) error {
	return providers.CreateFailed(err, providers.CreateMark{Provider: c.name, Nonce: nonce})
}

// marked finds the sandbox that bears the mark of a create which was answered with a
// conflict: something on the way may have sent it twice, and the first made it.
func (c *Client) marked(ctx context.Context, nonce string) (found wireSandbox, there bool, err error) {
	err = c.rows(ctx, filter(providers.Query{Labels: map[string]string{sandbox.LabelNonce: nonce}}), func(w wireSandbox) bool {
		if w.Labels[sandbox.LabelNonce] == nonce {
			found, there = w, true
		}
		return !there
	})
	return found, there, err
}

// undo deletes a sandbox whose program could not be started.
func (c *Client) undo(ctx context.Context, id string, err error) error {
	end, cancel := guest.CleanupContext(ctx, httpx.DefaultTimeout)
	defer cancel()
	if undone := c.Terminate(end, id, providers.TerminateOptions{Delete: true}); undone != nil {
		return fault.Placed(fault.New(fault.KindOf(err), "%w; its sandbox %s still runs", err, id).WithHint("end it with `sbx terminate %s/%s --delete`", c.name, id), c.name, "create")
	}
	return fault.Placed(fault.New(fault.KindOf(err), "%w; its sandbox was deleted again", err), c.name, "create")
}
