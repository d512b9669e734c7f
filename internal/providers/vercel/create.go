package vercel

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"math"
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

const (
	createTimeout = 60 * time.Second       // the API answers after the VM was placed
	pollInterval  = 500 * time.Millisecond // while a VM starts
)

// Create starts a sandbox and, where the spec has one, its program. The sandbox is not
// persistent, so that a stop leaves nothing that is billed. When the program cannot be
// started the sandbox is deleted again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := providers.CheckText(nil, spec.Env); err != nil {
		return sandbox.Sandbox{}, fault.Placed(err, c.Profile, "create")
	}
	body, err := c.createBody(spec)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	r := httpx.Request{Op: "create", Method: http.MethodPost, Path: "/v2/sandboxes", Query: c.teamQuery(), JSON: body, Timeout: createTimeout}
	if body.Runtime == "" {
		r.Path = "/v3/sandboxes"
	}
	var made wireNamed
	_, err = c.API.JSON(ctx, r, &made)
	mark := providers.CreateMark{Provider: c.Profile, Name: body.Name}
	if httpx.Status(err) == http.StatusConflict { // a proxy may have sent it twice, and the first one made the sandbox
		if there, failed := c.getByName(ctx, "create", body.Name); failed == nil {
			made, err = there, nil
		} else if !wirekit.Missing(failed) {
			return sandbox.Sandbox{}, wirekit.ConflictUnsettled(err, failed, mark)
		}
	}
	if err == nil && made.Session.ID == "" {
		err = c.Fault(fault.KindUnavailable, "create", "the answer names no session")
	}
	if err != nil {
		return sandbox.Sandbox{}, c.createFault(err, mark)
	}
	if len(spec.Command) > 0 {
		if err := c.launchProgram(ctx, &made.Session, spec); err != nil {
			return c.sandbox(view{&made.Sandbox, &made.Session}), wirekit.UndoCreate(ctx, c, made.Session.ID, err, "deleted", "")
		}
	}
	return c.sandbox(view{&made.Sandbox, &made.Session}), nil
}

func (c *Client) createBody(spec sandbox.Spec) (wireCreate, error) {
	refuse := func(format string, args ...any) (wireCreate, error) {
		return wireCreate{}, fault.Usage(format, args...).At(c.Profile, "create")
	}
	ttl := wirekit.TTL(spec.TTL)
	w := wireCreate{ProjectID: c.project, Name: uniqueName(spec.Name), Timeout: ttl.Milliseconds(), Image: spec.Image}
	switch {
	case spec.DiskBytes > 0 || spec.PIDs > 0 || spec.Isolate != "":
		return refuse("--disk, --pids and --isolate cannot be set: the service decides them")
	case countSources(spec) > 1:
		return refuse("--template, --image and --snapshot exclude each other: a sandbox starts from one of them")
	case spec.Snapshot != "":
		w.Source = &wireSource{"snapshot", spec.Snapshot}
	case spec.Template != "":
		w.Runtime = spec.Template
	case spec.Image == "":
		w.Runtime = c.runtime
	}
	var err error
	if w.Resources, err = resources(spec); err != nil {
		return refuse("%w", err)
	}
	if w.Tags, err = c.createTags(spec); err != nil {
		return wireCreate{}, err
	}
	if len(spec.Command) == 0 {
		w.Env = wirekit.Environment(spec.Env) // there is no program to give it to
	}
	return w, nil
}

func countSources(spec sandbox.Spec) (n int) {
	for _, s := range []string{spec.Template, spec.Image, spec.Snapshot} {
		if s != "" {
			n++
		}
	}
	return n
}

// memoryPerCore is the one ratio of memory to cores (Vercel Sandbox documentation, Pricing
// and limits).
const memoryPerCore = 2048 * sandbox.MiB

// resources converts --cpu and --memory; nil leaves the choice to the service.
func resources(spec sandbox.Spec) (*wireResources, error) {
	if spec.CPU <= 0 && spec.MemoryBytes <= 0 {
		return nil, nil //nolint:nilnil // the spec names none
	}
	wanted := max(spec.CPU, float64(spec.MemoryBytes)/memoryPerCore)
	n := int(math.Ceil(wanted))
	fits := wanted == float64(n) && (spec.CPU <= 0 || spec.CPU == wanted) && (spec.MemoryBytes <= 0 || spec.MemoryBytes == int64(n)*memoryPerCore)
	if !fits {
		return nil, fmt.Errorf("only whole cores are possible, each with 2048M of memory; the nearest that fits is --cpu %d --memory %dM", n, n*2048)
	}
	return &wireResources{n}, nil
}

// uniqueName makes a name unique in the project, as the API requires.
func uniqueName(name string) string {
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

// launchProgram waits until the VM runs and starts the program. The environment is part of
// that call only.
func (c *Client) launchProgram(ctx context.Context, w *wireSession, spec sandbox.Spec) error {
	waiting, cancel := context.WithTimeoutCause(ctx, createTimeout, fault.New(fault.KindUnavailable, "the VM did not start within %s", createTimeout))
	defer cancel()
	for w.Status == "pending" {
		if err := wirekit.Sleep(waiting, pollInterval); err != nil {
			if ctx.Err() == nil {
				return context.Cause(waiting)
			}
			return err
		}
		var one wireOneSession
		if err := c.getObject(waiting, "create", sessionPath(w.ID), &one); err != nil {
			return err
		}
		if err := providers.CheckAnswerID(c.Profile, "create", w.ID, one.Session.ID); err != nil {
			return err
		}
		*w = one.Session
	}
	return guest.Start(ctx, c.shellOf(w.ID, spec.Env), guest.Program{Args: spec.Command, Workdir: spec.Workdir})
}

func (c *Client) createFault(err error, mark providers.CreateMark) error {
	switch status := httpx.Status(err); {
	case status == http.StatusPaymentRequired:
		return providers.NothingMade(c.Fault(fault.KindRefused, "create", "%w", err).
			WithHint("the limit of the account's plan is reached; `sbx ls --provider %s` lists candidates to terminate", c.Profile))
	case errorCode(err) == "snapshot_not_found":
		return providers.NothingMade(c.Fault(fault.KindNotFound, "create", "%w", err).
			WithHint("the snapshot has expired or was deleted: create without --snapshot"))
	}
	return providers.CreateFailed(err, mark)
}

// maxTags is how many tags a sandbox may have (Vercel Sandbox documentation, Tags).
const maxTags = 5

// labelTags maps labels of sbx to tags of the API, which has no other labels. Which characters
// a tag's key may have is not documented, so these have no slash. Other keys stay as they are.
func labelTags() map[string]string {
	return map[string]string{
		sandbox.LabelOwner: "sbx-owner", sandbox.LabelName: "sbx-name", sandbox.LabelTask: "sbx-task", sandbox.LabelAgentType: "sbx-agent-type", sandbox.LabelKeep: "sbx-keep",
		sandbox.LabelNonce: "sbx-nonce", sandbox.LabelKeptUntil: "sbx-kept-until",
	}
}

func toTags(labels map[string]string) map[string]string {
	out, known := map[string]string{}, labelTags()
	for key, value := range labels {
		if tag := known[key]; tag != "" {
			key = tag
		}
		out[key] = value
	}
	return out
}

// toLabels converts tags to labels; nil without tags.
func toLabels(tags map[string]string) map[string]string {
	if len(tags) == 0 {
		return nil
	}
	out := maps.Clone(tags)
	for label, tag := range labelTags() {
		if value, there := out[tag]; there {
			delete(out, tag)
			out[label] = value
		}
	}
	return out
}

// createTags are the tags of a new sandbox; fault.KindUsage where there are too many.
func (c *Client) createTags(spec sandbox.Spec) (map[string]string, error) {
	out := toTags(spec.CreateLabels())
	if len(out) > maxTags { // the task's own record has it, too
		delete(out, labelTags()[sandbox.LabelKeptUntil])
	}
	if len(out) > maxTags {
		return nil, fault.Usage("a sandbox can have %d tags, and these are %d: labels, owner, name, task and agent type", maxTags, len(out)).
			At(c.Profile, "create").WithHint("leave out a --label")
	}
	return out, nil
}
