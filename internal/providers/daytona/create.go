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
	"sbx/internal/poll"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

const (
	createTimeout = 60 * time.Second // the API waits up to 30 s for `started`
	startTimeout  = 5 * time.Minute  // from create to state started
	gibibyte      = 1024 * sandbox.MiB
)

// Create starts a sandbox and, where the spec has one, its program. When the
// program cannot be started the sandbox is deleted again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := providers.CheckText(nil, spec.Env); err != nil {
		return sandbox.Sandbox{}, fault.Placed(err, c.Profile, "create")
	}
	body, err := c.createBody(spec)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	made, err := c.postCreate(ctx, body)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	s := c.sandbox(made)
	if len(spec.Command) == 0 {
		return s, nil
	}
	if s, err = c.waitStarted(ctx, s); err == nil {
		err = guest.Start(ctx, c.shellOf(s.ID, spec.Env, false), guest.Program{Args: spec.Command, Workdir: spec.Workdir})
	}
	if err != nil {
		return s, wirekit.UndoCreate(ctx, c, s.ID, err, "deleted", " --delete")
	}
	return s, nil
}

// postCreate makes the sandbox. After a conflict, or a start that failed, it looks for the
// sandbox by its nonce.
func (c *Client) postCreate(ctx context.Context, body wireCreate) (wireSandbox, error) {
	var made wireSandbox
	mark := providers.CreateMark{Provider: c.Profile, Nonce: body.Labels[sandbox.LabelNonce]}
	_, err := c.API.JSON(ctx, httpx.Request{Op: "create", Method: http.MethodPost, Path: "/sandbox", JSON: body, Timeout: createTimeout}, &made)
	if httpx.Status(err) == http.StatusConflict || failedToStart(err) {
		found, there, failed := c.findByNonce(ctx, mark.Nonce)
		switch {
		case there && failedToStart(err):
			return found, wirekit.UndoCreate(ctx, c, found.ID, c.Fault(fault.KindLauncher, "create", "%w", err), "deleted", " --delete")
		case there:
			return found, nil
		case failed != nil:
			return made, wirekit.ConflictUnsettled(err, failed, mark)
		}
	}
	if err == nil && made.ID == "" {
		err = fault.New(fault.KindUnavailable, "the answer names no sandbox").At(c.Profile, "create")
	}
	if failedToStart(err) { // the listing lags: the failed sandbox may exist and be billed
		return made, fault.New(fault.KindUnavailable, "%w; the failed sandbox may exist", err).At(c.Profile, "create").
			WithHint("search for it with `sbx ls --all --provider %s --label %s=%s`", c.Profile, sandbox.LabelNonce, mark.Nonce)
	}
	if err != nil {
		return made, providers.CreateFailed(err, mark)
	}
	return made, nil
}

// failedToStart says that the platform made the sandbox and that its start failed (Daytona,
// create: 400 "Sandbox failed to start: ...").
func failedToStart(err error) bool {
	s := httpx.StatusOf(err)
	return s != nil && s.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(s.Message), "failed to start")
}

func (c *Client) waitStarted(ctx context.Context, s sandbox.Sandbox) (sandbox.Sandbox, error) {
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	late := func(err error) error { // its caller has set no limit, so none of the caller's was reached
		if asked.Err() == nil && ctx.Err() != nil {
			return fault.New(fault.KindUnavailable, "it did not start within %s: it is %s", startTimeout, s.RawState)
		}
		return err
	}
	for pauses := poll.NewBackoff(100*time.Millisecond, 2*time.Second); s.State != sandbox.StateRunning; {
		if !isTransitional(s.State) {
			return s, fault.New(fault.KindLauncher, "it became %s", s.RawState)
		}
		if pauses.Sleep(ctx) != nil {
			return s, late(wirekit.ContextFault(ctx))
		}
		now, err := c.Get(ctx, s.ID)
		if err != nil {
			return s, late(err)
		}
		s = now
	}
	return s, nil
}

func (c *Client) createBody(spec sandbox.Spec) (wireCreate, error) {
	refuse := func(text string) (wireCreate, error) {
		return wireCreate{}, fault.Usage("%s", text).At(c.Profile, "create")
	}
	ttl := wirekit.TTL(spec.TTL)
	nonce := strings.ToLower(rand.Text())
	// A sandbox without calls of its toolbox counts as idle, also while its program works,
	// and reads of sbx are no activity: the service's default of 15 minutes would stop it in
	// the middle of a longer run. So it may be idle for its whole life. 0 (never) would remove
	// this limit, which still stops an idle sandbox if its TTL has no effect.
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
		return refuse("the snapshot sets cpu, memory and disk; to choose them, name an --image")
	}
	if spec.CPU != math.Trunc(spec.CPU) || spec.MemoryBytes%gibibyte != 0 || spec.DiskBytes%gibibyte != 0 {
		return refuse("cpu, memory and disk must be whole cores and whole gigabytes")
	}
	w.CPU, w.Memory, w.Disk = int(spec.CPU), int(spec.MemoryBytes/gibibyte), int(spec.DiskBytes/gibibyte)
	w.Labels[sandbox.LabelNonce] = cmp.Or(w.Labels[sandbox.LabelNonce], nonce)
	if spec.Name != "" {
		w.Name = spec.Name + "-" + nonce[:8] // names are unique in an organization
	}
	if len(spec.Command) > 0 {
		w.Labels[sandbox.LabelRun] = guest.MainTag
	} else {
		w.Env = wirekit.Environment(spec.Env) // there is no program to give it to
	}
	return w, nil
}

// findByNonce finds the sandbox of a create that was answered with a conflict: a proxy may
// have sent the request twice, and the first one made the sandbox.
func (c *Client) findByNonce(ctx context.Context, nonce string) (found wireSandbox, there bool, err error) {
	err = c.eachRow(ctx, listQuery(providers.Query{Labels: map[string]string{sandbox.LabelNonce: nonce}}), func(w wireSandbox) bool {
		if w.Labels[sandbox.LabelNonce] == nonce {
			found, there = w, true
		}
		return !there
	})
	return found, there, err
}
