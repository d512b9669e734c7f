package kubernetes

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

const (
	createTimeout = 30 * time.Second // admission webhooks may take that long
	// startLimit is how long a pod may take until it runs: a node that is added, and an image that is pulled.
	startLimit = 5 * time.Minute
	// unschedulableLimit is how long no node may have room: an autoscaler may add one.
	unschedulableLimit = time.Minute
	// refusedLimit is how long the API may refuse to make the pod: a quota has room again when another one ends.
	refusedLimit = 7 * time.Second
	// recordFor is how long the record of a job of sbx stays after its end, in seconds.
	recordFor = 24 * 60 * 60
	// podGrace is the time from TERM to KILL of a pod of sbx, in seconds; its shell ends at once.
	podGrace = 5
)

// createDefaults are settings of the profile.
type createDefaults struct{ image, runtimeClass string }

// Vet implements providers.Vetter.
func (c *Client) Vet(spec sandbox.Spec) error {
	if err := providers.CheckText(nil, spec.Env); err != nil {
		return fault.Placed(err, c.Profile, "create")
	}
	refuse := func(format string, args ...any) error { return fault.Usage(format, args...).At(c.Profile, "create") }
	switch {
	case spec.Isolate != "":
		return refuse("--isolate has no effect here: `runtime_class` of the profile isolates")
	case spec.Template != "" && spec.Image != "" && spec.Template != spec.Image, spec.Snapshot != "":
		return refuse("a pod is made from an image: name it with --image")
	case spec.CPU < 0 || math.IsNaN(spec.CPU) || spec.CPU > 1e6 || spec.CPU > 0 && spec.CPU < 0.001:
		return refuse("the number of cores must be 0.001 or more")
	case spec.PIDs > 0:
		return refuse("the number of processes is limited by the kubelet, not by a pod")
	}
	_, _, err := splitLabels(spec.CreateLabels())
	return fault.Placed(err, c.Profile, "create")
}

// selects says that a label of sbx is one of the API, too: what has it is searched for, or followed.
func selects(key string) bool { return key == sandbox.LabelOwner || key == sandbox.LabelNonce }

// splitLabels parts the labels of sbx into labels and annotations: an annotation may have any value. What selects
// the sandboxes of sbx is both.
func splitLabels(all map[string]string) (labels, annotations map[string]string, err error) {
	labels, annotations = map[string]string{}, map[string]string{}
	for key, value := range all {
		isOwn := strings.HasPrefix(key, labelPrefix)
		wrongKey, wrongValue := validation.IsQualifiedName(key), validation.IsValidLabelValue(value)
		switch {
		case len(wrongKey) > 0:
			return nil, nil, fault.Usage("%q is no key of a label: %s", key, wrongKey[0])
		case !isOwn && len(wrongValue) > 0:
			return nil, nil, fault.Usage(
				"%q is no value of the label %s: %s", value, key, wrongValue[0],
			).WithHint("a key that begins with %s takes any value", labelPrefix)
		case isOwn:
			annotations[key] = value
		}
		if !isOwn || selects(key) && len(wrongValue) == 0 {
			labels[key] = value
		}
	}
	return labels, annotations, nil
}

// Create makes a sandbox, or a job where the cluster has no such kind, and waits until its pod runs. Its container
// waits for the time limit; the program of the spec is started in it. When that fails the object is deleted again.
func (c *Client) Create(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	if err := c.Vet(spec); err != nil {
		return sandbox.Sandbox{}, err
	}
	k, version, err := c.newKind(ctx)
	if err != nil {
		return sandbox.Sandbox{}, providers.NothingMade(err)
	}
	body, err := c.createBody(k, version, spec)
	if err != nil {
		return sandbox.Sandbox{}, providers.NothingMade(fault.Placed(err, c.Profile, "create"))
	}
	made, err := c.postCreate(ctx, k, version, body)
	if err != nil {
		return sandbox.Sandbox{}, err
	}
	o, err := c.awaitPod(ctx, object{kind: k, wireObject: made})
	if err == nil { // an admission webhook may have changed them
		err = wirekit.CheckLimits(spec, o.limits())
	}
	if err == nil && len(spec.Command) > 0 {
		var sh guest.Shell
		if sh, err = c.shellIn(o, "create", spec.Env); err == nil {
			err = guest.Start(ctx, sh, guest.Program{Args: spec.Command, Workdir: spec.Workdir})
		}
	}
	if err != nil {
		return c.described(o), wirekit.UndoCreate(ctx, c, idOf(k, made.Metadata), fault.Placed(err, c.Profile, "create"), "deleted", "")
	}
	return c.described(o), nil
}

// newKind is the kind of new sandboxes.
func (c *Client) newKind(ctx context.Context) (kind, string, error) {
	for _, k := range kinds() {
		if !slices.Contains(k.verbs, "create") || !c.lists(k) {
			continue
		}
		if version, err := c.version(ctx, "create", k); err != nil || version != "" {
			return k, version, err
		}
	}
	return kind{}, "", c.Fault(fault.KindUsage, "create", "`kinds` of the profile has neither sandbox nor job, and sbx makes no bare pods")
}

func (c *Client) createBody(k kind, version string, spec sandbox.Spec) (wireCreate, error) {
	ttl := wirekit.TTL(spec.TTL)
	seconds := int64(math.Ceil(ttl.Seconds()))
	expires := c.ServerNow().Add(ttl).UTC().Format(time.RFC3339)
	all := spec.CreateLabels()
	all[sandbox.LabelNonce] = cmp.Or(all[sandbox.LabelNonce], strings.ToLower(rand.Text()))
	all[sandbox.LabelExpires], all[sandbox.LabelRun] = expires, guest.MainTag
	if key, value, ok := strings.Cut(c.label, "="); ok {
		all[key] = value
	}
	labels, annotations, err := splitLabels(all)
	if err != nil {
		return wireCreate{}, err
	}
	meta := wireCreateMeta{Labels: labels, Annotations: annotations}
	template := &wireCreateTemplate{Metadata: meta, Spec: c.podBody(spec, ttl)}
	meta.Name = objectName(spec.Name, all[sandbox.LabelNonce])
	w := wireCreate{APIVersion: strings.TrimPrefix(k.group+"/"+version, "/"), Kind: k.kind, Metadata: meta}
	if k.name == createsJobs {
		w.Spec = wireCreateSpec{Template: template, BackoffLimit: new(int64(0)), ActiveDeadlineSeconds: seconds, TTLSecondsAfterFinished: recordFor}
		return w, nil
	}
	w.Spec = wireCreateSpec{PodTemplate: template, ShutdownTime: expires, ShutdownPolicy: "Delete"}
	return w, nil
}

func (c *Client) podBody(spec sandbox.Spec, ttl time.Duration) wireCreatePod {
	container := wireCreateContainer{
		Name: "main", Image: cmp.Or(spec.Image, spec.Template, c.defaults.image, guest.DefaultImage),
		Command: guest.ExtendableHoldArgs(ttl), Resources: wireCreateResources{Limits: map[string]string{}},
	}
	for name, amount := range map[string]int64{"memory": spec.MemoryBytes, "ephemeral-storage": spec.DiskBytes} {
		if amount > 0 {
			container.Resources.Limits[name] = strconv.FormatInt(amount, 10)
		}
	}
	if spec.CPU > 0 {
		container.Resources.Limits["cpu"] = strconv.FormatInt(int64(math.Ceil(spec.CPU*1000)), 10) + "m"
	}
	if len(spec.Command) == 0 { // there is no program to give it to
		for key, value := range wirekit.Environment(spec.Env) {
			container.Env = append(container.Env, wireCreateEnv{key, value})
		}
	}
	return wireCreatePod{
		Containers: []wireCreateContainer{container}, RestartPolicy: "Never", RuntimeClassName: c.defaults.runtimeClass,
		AutomountServiceAccountToken: false, TerminationGracePeriodSeconds: podGrace,
	}
}

// objectName is a name that the API takes, and that only a create with this nonce has. A job adds six characters
// for its pod, and a name of a pod is one of a host.
func objectName(name, nonce string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	sum := sha256.Sum256([]byte(nonce))
	return strings.TrimLeft(cmp.Or(strings.Trim(clean[:min(len(clean), 40)], "-"), "sbx")+"-"+hex.EncodeToString(sum[:5]), "-")
}

// postCreate makes the object. Where its name is taken, an earlier try has made it, of which the answer was lost.
func (c *Client) postCreate(ctx context.Context, k kind, version string, body wireCreate) (wireObject, error) {
	mark := providers.CreateMark{Provider: c.Profile, Nonce: body.Metadata.Annotations[sandbox.LabelNonce]}
	var made wireObject
	_, err := c.API.JSON(ctx, httpx.Request{Op: "create", Method: http.MethodPost, Path: c.path(k, version), JSON: body, Timeout: createTimeout}, &made)
	if httpx.Status(err) == http.StatusConflict {
		earlier, failed := c.getObject(ctx, "create", k, version, body.Metadata.Name)
		switch {
		case failed != nil && !httpx.AnsweredMissing(failed):
			return made, wirekit.ConflictUnsettled(err, failed, mark)
		case failed == nil && earlier.Metadata.Annotations[sandbox.LabelNonce] == mark.Nonce:
			return earlier, nil
		}
	}
	if err == nil && (made.Metadata.UID == "" || made.Metadata.Name != body.Metadata.Name) {
		err = fault.New(fault.KindUnavailable, "the answer names no object").At(c.Profile, "create")
	}
	if err != nil {
		return made, c.admission(providers.CreateFailed(err, mark))
	}
	return made, nil
}

// Copies reads the name of a sandbox once more: it is made of the nonce, so that the API refuses a second one while the
// first exists, and one that came later has the name. A read that has found nothing a moment ago has said so.
func (c *Client) Copies(ctx context.Context, id, nonce string) ([]sandbox.Sandbox, error) {
	of, isID := parseID(id)
	if !isID || nonce == "" {
		return nil, c.Fault(fault.KindNotFound, "copies of "+id, "it is no id of this provider")
	}
	if _, known, err := c.lately.Last(ctx, id); known && httpx.AnsweredMissing(err) {
		return nil, nil
	}
	w, err := c.getObject(ctx, "copies of "+id, of.kind, "", of.name)
	switch {
	case wirekit.Missing(err):
		return nil, nil
	case err != nil:
		return nil, err
	case shortUID(w.Metadata.UID) == of.uid || w.Metadata.Annotations[sandbox.LabelNonce] != nonce:
		return nil, nil
	}
	o, err := c.withPods(ctx, "copies of "+id, object{kind: of.kind, wireObject: w})
	if err != nil {
		return nil, err
	}
	return []sandbox.Sandbox{c.described(o)}, nil
}

// startFailures are reasons of a waiting container that do not pass by themselves.
func startFailures() []string {
	return []string{
		"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError",
		"RunContainerError", "CrashLoopBackOff",
	}
}

// awaitPod waits until the pod of a new object runs. At once there is none, and the status does not select it yet, so
// that a read would list the pods of the whole namespace.
func (c *Client) awaitPod(ctx context.Context, made object) (object, error) {
	began := time.Now()
	wait := c.newStartWait(ctx, made)
	for {
		o, err := wait.next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return made, wirekit.ContextFault(ctx)
		case err != nil:
			return made, err
		}
		state, raw := o.state()
		refused := c.podRefusal(ctx, o, time.Since(began))
		switch reason := o.waitReason(); {
		case o.podRuns() && state == sandbox.StateRunning:
			return o, nil
		case state.Ended() || state == sandbox.StateTerminating:
			return o, fault.New(fault.KindLauncher, "its pod has ended before it ran: %s", raw)
		case slices.Contains(startFailures(), reason):
			return o, fault.New(fault.KindLauncher, "its container does not start: %s", words(reason, o.waitMessage()))
		case reason == "Unschedulable" && time.Since(began) > unschedulableLimit:
			return o, fault.New(fault.KindLauncher, "no node takes its pod: %s", o.waitMessage()).WithHint("ask for less with --memory and --cpu, or add a node")
		case refused != "":
			return o, fault.New(fault.KindLauncher, "it gets no pod: %s", refused).WithHint("%s", c.refusalHint(refused))
		case time.Since(began) > startLimit:
			return o, fault.New(fault.KindLauncher, "its pod does not run after %s: %s", startLimit, words(raw, o.waitMessage()))
		}
	}
}

// podRuns says that its main container runs, whatever the controller has noted so far.
func (o object) podRuns() bool {
	p, ok := o.pod()
	state, _ := o.podState()
	return ok && state == sandbox.StateRunning && p.Status.Phase == "Running" && o.mainStatus().State.Terminated == nil
}

// waitMessage is what the kubelet or the scheduler says about the reason.
func (o object) waitMessage() string {
	if w := o.mainStatus().State.Waiting; w != nil && w.Message != "" {
		return w.Message
	}
	p, _ := o.pod()
	return (object{wireObject: p}).condition("PodScheduled").Message
}
