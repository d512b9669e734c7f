package docker

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

const (
	createTimeout = 60 * time.Second // disks of engines are slow
	startTimeout  = 30 * time.Second // of each of three tries
	pullTimeout   = 10 * time.Minute
)

// createDefaults are settings of the profile.
type createDefaults struct{ image, network, runtime string }

// Vet implements providers.Vetter.
func (c *Client) Vet(spec sandbox.Spec) error {
	if err := providers.CheckText(nil, spec.Env); err != nil {
		return fault.Placed(err, c.Profile, "create")
	}
	refuse := func(text string) error { return fault.Usage("%s", text).At(c.Profile, "create") }
	switch {
	case spec.Isolate != "":
		return refuse("--isolate has no effect here: `runtime` of the profile isolates")
	case spec.Template != "" && spec.Image != "" && spec.Template != spec.Image, spec.Snapshot != "":
		return refuse("a container is made from an image: name it with --image")
	case spec.CPU < 0 || spec.CPU > 0 && spec.CPU < 0.01 || math.IsNaN(spec.CPU) || spec.CPU > 1e6:
		return refuse("the number of cores must be 0.01 or more")
	case spec.MemoryBytes != 0 && spec.MemoryBytes < 6*sandbox.MiB:
		return refuse("the engine takes memory limits of 6 MiB or more")
	}
	return nil
}

// Create makes a container that waits for its time limit, and starts the program of the spec in it. A missing
// image is pulled. When the program cannot be started, the container is deleted again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := c.Vet(spec); err != nil {
		return sandbox.Sandbox{}, err
	}
	body := c.createBody(spec)
	made, err := c.postCreate(ctx, spec.Name, body)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	s := sandbox.Sandbox{Provider: c.Profile, ProviderType: TypeName, ID: made.ID}
	if err = checkWarnings(spec, made.Warnings); err == nil {
		err = c.start(ctx, made.ID, body.Image)
	}
	var now wireContainer
	if err == nil {
		if now, err = c.inspectOwn(ctx, "create", made.ID); err == nil {
			s = c.inspected(now)
			err = c.checkLimits(ctx, spec, now)
		}
	}
	if err == nil && len(spec.Command) > 0 {
		err = guest.Start(ctx, c.shellOf(made.ID, spec.Env), guest.Program{Args: spec.Command, Workdir: spec.Workdir})
		c.started.Keep(made.ID, time.Now(), now, err) // a command inside has just answered
	}
	if err != nil {
		return s, wirekit.UndoCreate(ctx, c, made.ID, fault.Placed(err, c.Profile, "create"), "deleted", " --delete")
	}
	return s, nil
}

// checkWarnings refuses a container whose limits the engine will not enforce, where they must be.
func checkWarnings(spec sandbox.Spec, warnings []string) error {
	if !spec.RequireHardLimit || len(warnings) == 0 {
		return nil
	}
	return wirekit.NoHardLimit(strings.Join(warnings, "; "))
}

// checkLimits compares what was asked for with what the engine says of the container, and with the control groups that it
// has: Podman without root drops limits without a word where its user has none (Podman 4.3).
func (c *Client) checkLimits(ctx context.Context, spec sandbox.Spec, w wireContainer) error {
	if !spec.RequireHardLimit {
		return nil
	}
	for name, asked := range map[string]bool{groupMemory: spec.MemoryBytes > 0, groupCPU: spec.CPU > 0, groupPIDs: spec.PIDs > 0} {
		if lacks, err := c.lacksGroup(ctx, "create", name); err != nil {
			return err
		} else if asked && lacks {
			return wirekit.NoHardLimit("the engine has no control group " + name)
		}
	}
	return wirekit.CheckLimits(spec, w.HostConfig.limits())
}

func (c *Client) createBody(spec sandbox.Spec) wireCreate {
	ttl := wirekit.TTL(spec.TTL)
	w := wireCreate{
		Image: cmp.Or(spec.Image, spec.Template, c.defaults.image, guest.DefaultImage), Labels: spec.CreateLabels(),
		Entrypoint: guest.HoldArgs(ttl), Cmd: []string{},
		HostConfig: wireCreateHost{
			Memory: spec.MemoryBytes, MemorySwap: spec.MemoryBytes, NanoCPUs: int64(spec.CPU * 1e9), PidsLimit: spec.PIDs, NetworkMode: c.defaults.network,
			Runtime: c.defaults.runtime,
		},
	}
	if spec.DiskBytes > 0 {
		w.HostConfig.StorageOpt = map[string]string{"size": strconv.FormatInt(spec.DiskBytes, 10)}
	}
	w.Labels[sandbox.LabelNonce] = cmp.Or(w.Labels[sandbox.LabelNonce], strings.ToLower(rand.Text()))
	w.Labels[sandbox.LabelExpires] = c.Now().Add(ttl).UTC().Format(time.RFC3339)
	w.Labels[sandbox.LabelRun] = guest.MainTag
	if key, value, ok := strings.Cut(c.label, "="); ok {
		w.Labels[key] = value
	}
	if len(spec.Command) == 0 {
		w.Env = spec.Env // there is no program to give it to
	}
	return w
}

// postCreate makes the container, after a pull where the engine lacks the image. A name is made unique by the
// nonce: the engine refuses one that is taken.
func (c *Client) postCreate(ctx context.Context, name string, body wireCreate) (wireCreated, error) {
	mark := providers.CreateMark{Provider: c.Profile, Nonce: body.Labels[sandbox.LabelNonce]}
	query := url.Values{}
	if name != "" {
		query.Set("name", containerName(name)+"-"+mark.Nonce[:min(8, len(mark.Nonce))])
	}
	var made wireCreated
	post := func() error {
		return c.json(ctx, httpx.Request{Op: "create", Method: http.MethodPost, Path: "/containers/create", Query: query, JSON: body, Timeout: createTimeout}, &made)
	}
	err := post()
	if s := httpx.StatusOf(err); s != nil && s.Status == http.StatusNotFound && strings.Contains(strings.ToLower(s.Message), "image") {
		if failed := c.pull(ctx, body.Image); failed != nil {
			return made, providers.NothingMade(failed)
		}
		err = post()
	}
	if httpx.Status(err) == http.StatusConflict { // the name is taken: by the container of a first try, of which the answer was lost
		rows, failed := c.rows(ctx, "create", filters("label", sandbox.LabelNonce+"="+mark.Nonce))
		switch {
		case failed != nil:
			return made, wirekit.ConflictUnsettled(err, failed, mark)
		case len(rows) == 1:
			return wireCreated{ID: rows[0].ID}, nil
		}
	}
	if err == nil && made.ID == "" {
		err = fault.New(fault.KindUnavailable, "the answer names no container").At(c.Profile, "create")
	}
	if err != nil {
		return made, providers.CreateFailed(err, mark)
	}
	return made, nil
}

// containerName is a name with the characters that the engine takes.
func containerName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r < 128 && (r == '_' || r == '.' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z') {
			return r
		}
		return '-'
	}, name)
	return "s" + strings.TrimLeft(clean[:min(len(clean), 100)], "-._")
}

// pull lets the engine fetch an image. Its answer is a stream of progress, in which an error is one line.
func (c *Client) pull(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pullTimeout, fault.New(fault.KindUnavailable, "the image %s was not pulled within %s", image, pullTimeout))
	defer cancel()
	name, tag := splitImage(image)
	r, err := c.request(
		ctx,
		httpx.Request{
			Op: "create", Method: http.MethodPost, Path: "/images/create", Query: url.Values{"fromImage": {name}, "tag": {tag}}, Timeout: createTimeout,
			Quiet: true,
		},
	)
	if err != nil {
		return err
	}
	s, err := c.API.Stream(ctx, r)
	if err == nil {
		defer func() { _ = s.Body.Close() }()
		err = readPull(s.Body)
	}
	if err != nil {
		return fault.New(fault.KindOf(err), "the image %s cannot be pulled: %w", image, err).At(c.Profile, "create").
			WithHint("`docker pull %s` on that host shows more, and takes your credentials", image)
	}
	return nil
}

// readPull reads the progress of a pull to its end.
func readPull(body io.Reader) error {
	for line, err := range jsonLines(body) {
		if err != nil {
			return err
		}
		if line.Error != "" {
			return fault.New(fault.KindLauncher, "%s", line.Error)
		}
	}
	return nil
}

// splitImage parts a name from its tag; without tag and digest the tag is latest, since the API would pull
// every tag.
func splitImage(image string) (name, tag string) {
	if strings.Contains(image, "@") {
		return image, ""
	}
	i := strings.LastIndexByte(image, ':')
	if i < 0 || strings.Contains(image[i:], "/") { // the colon of a port
		return image, "latest"
	}
	return image[:i], image[i+1:]
}

func (c *Client) start(ctx context.Context, id, image string) error {
	err := c.send(ctx, httpx.Request{Op: "create", Method: http.MethodPost, Path: httpx.Path("containers", id, "start"), Timeout: startTimeout, Again: true})
	if s := httpx.StatusOf(err); s != nil && strings.Contains(s.Message, "/bin/sh") {
		return fault.New(fault.KindLauncher, "the image %s has no /bin/sh, which sbx runs programs with: %w", image, err)
	} else if s != nil && httpx.Refused(s.Status) {
		return fault.New(fault.KindLauncher, "%w", err)
	}
	return err
}
