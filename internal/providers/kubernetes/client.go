// Package kubernetes speaks the API of Kubernetes: a profile is a context of a kubeconfig and a namespace, whose
// sandboxes are objects of a few kinds (kinds.go).
//
// An end deletes the object, with the unique id that was judged as its precondition: an object that was made
// again under the same name is never ended. What a controller would make again is ended by its controller.
//
// A sandbox that sbx made runs a shell that waits until its time limit. The program runs inside, with its
// output in files (room guest). Any other has the log and the exit of the main container of its pod.
//
// Only kubeconfig files and credentials are read with client-go; requests are those of httpx.
package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/guest"
	"sbx/internal/providers/wirekit"
)

// TypeName is the provider type's name.
const TypeName = "kubernetes"

// Client is one namespace of one cluster.
type Client struct {
	wirekit.Base
	wirekit.Reasons

	at         *target
	label      string   // KEY=VALUE or KEY of the objects that the profile has; "" = all
	kinds      []string // names of kinds that are listed; nil = all that are served
	defaults   createDefaults
	turns      guest.Turns
	watches    guest.Watches
	notice     func(string) // one line for the operator; nil = nobody
	live       live
	pods       podList
	names      nameLists
	lately     wirekit.Lately[object] // what Get has read, with the pods
	podWatches podWatches

	discovers chan struct{} // has an item while one asks which version is served
	mu        sync.Mutex
	served    map[string]discovery // by API group
}

// discovery is which version of an API group is served.
type discovery struct {
	version string // "" = none that is known here
	at      time.Time
}

var (
	_ providers.Provider         = (*Client)(nil)
	_ providers.NameReader       = (*Client)(nil)
	_ providers.Rehearser        = (*Client)(nil)
	_ providers.LogReader        = (*Client)(nil)
	_ providers.LogPartReader    = (*Client)(nil)
	_ providers.UsageReader      = (*Client)(nil)
	_ providers.UsageBatchReader = (*Client)(nil)
	_ providers.Launcher         = (*Client)(nil)
	_ providers.CopyReader       = (*Client)(nil)
	_ providers.Vetter           = (*Client)(nil)
	_ providers.Commander        = (*Client)(nil)
	_ providers.Prober           = (*Client)(nil)
	_ providers.EventReader      = (*Client)(nil)
	_ providers.ExitReader       = (*Client)(nil)
	_ providers.QuotaReader      = (*Client)(nil)
	_ providers.LabelEditor      = (*Client)(nil)
	_ providers.Extender         = (*Client)(nil)
	_ providers.Verifier         = (*Client)(nil)
	_ providers.Checker          = (*Client)(nil)
	_ providers.Clock            = (*Client)(nil)
	_ providers.Explainer        = (*Client)(nil)
)

// Type describes Kubernetes.
func Type() providers.Type {
	return providers.Type{
		Name: TypeName, Help: "pods, jobs and agent sandboxes of a namespace of Kubernetes", TellsQuota: true,
		Facts:     providers.Facts{EndKeeps: providers.EndKeepsNothing},
		LabelsIn:  "`metadata.labels` of the object, or its annotations that begin with `sbx/`",
		ExitWords: exitWords(),
		LifeSigns: []providers.LifeSign{
			{
				Ability: "logs", Shows: "created by sbx: output of the program; others: output of the main container",
				Misses: "output of `kubectl exec` and `sbx exec`; others: a line before its end",
			},
			{Ability: "usage", Shows: "CPU and memory of the last sample of the metrics server", Misses: "what waits, and the last 15 seconds or more"},
			{Ability: "probe", Shows: "whether a shell starts in it", Misses: "whether the program is active"},
		},
		Options: []providers.Option{
			{
				Name: "kubeconfig", Env: "KUBECONFIG", Kind: providers.OptionText, Account: true,
				Help: "kubeconfig file, or several as in PATH; empty = ~/.kube/config, else the account of the pod that sbx runs in",
			},
			{Name: "context", Kind: providers.OptionText, Account: true, Help: "context of the kubeconfig; empty = its current one"},
			{Name: "namespace", Kind: providers.OptionText, Account: true, Help: "namespace; empty = that of the context, else default"},
			{
				Name: "kinds", Kind: providers.OptionText, Account: true,
				Help: "kinds to list, such as `job,pod`; empty = sandbox, job and pod, as far as they are served",
			},
			{Name: "label", Kind: providers.OptionText, Account: true, Help: "`KEY=VALUE` or KEY: list only objects with this label, and give it to new ones"},
			{Name: "image", Default: guest.DefaultImage, Kind: providers.OptionText, Help: "image of new sandboxes; it needs /bin/sh"},
			{Name: "runtime_class", Kind: providers.OptionText, Help: "runtime class of new sandboxes, such as gvisor or kata; empty = the cluster's default"},
		},
		Open: opener(accountFolder),
	}
}

// opener opens profiles; account is the folder with the account of a pod.
func opener(account string) func(context.Context, providers.Profile, providers.Deps) (providers.Provider, error) {
	return func(_ context.Context, p providers.Profile, d providers.Deps) (providers.Provider, error) {
		return open(p, d, account)
	}
}

func open(p providers.Profile, d providers.Deps, account string) (providers.Provider, error) {
	c := &Client{
		label: p.Settings["label"], defaults: createDefaults{
			image: p.Settings["image"], runtimeClass: p.Settings["runtime_class"],
		}, served: map[string]discovery{}, notice: d.Notice, pods: podList{turn: make(chan struct{}, 1)}, discovers: make(chan struct{}, 1),
		Reasons: wirekit.Reasons{
			"history":   "the metrics server keeps no samples",
			"stats":     "the API has no counts of the past; sbx counts the listing",
			"activity":  "the API reports no activity",
			"processes": "the API does not list commands that run in a container",
			"records":   "the provider's own list is the only source",
		},
	}
	var err error
	if c.kinds, err = kindNames(p.Settings["kinds"]); err == nil {
		c.at, err = findTarget(p.Settings, d, account)
	}
	if err != nil {
		return nil, fault.Placed(err, p.Name, "")
	}
	c.Base, err = wirekit.NewBase(
		p, d, TypeName,
		httpx.Options{
			Base: c.at.base, Transport: c.at.transport, Explain: explain, Passing: func(s *httpx.StatusError) bool { return c.isPassing(s.Status, s.Message) },
		},
	)
	if err != nil {
		return nil, err
	}
	c.at.api = c.API
	return c, nil
}

// explain reads the Status object of an error answer.
func explain(_ int, body []byte) (code, message string) {
	var s wireStatus
	_ = json.Unmarshal(body, &s) // another body has neither
	return s.Reason, s.Message
}

// kindNames are the kinds of a setting; nil for none.
func kindNames(text string) ([]string, error) {
	names := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	for _, name := range names {
		if !slices.ContainsFunc(kinds(), func(k kind) bool { return k.name == name && k.with == "" }) {
			return nil, fault.Usage("kinds: there is no kind %q", name).WithHint("write some of sandbox, job and pod, with commas")
		}
	}
	return names, nil
}

// path is the address of the objects of a kind in the namespace, or of one of them.
func (c *Client) path(k kind, version string, rest ...string) string {
	root := []string{"api", version}
	if k.group != "" {
		root = []string{"apis", k.group, version}
	}
	return httpx.Path(slices.Concat(root, []string{"namespaces", c.at.namespace, k.plural}, rest)...)
}

func (c *Client) podPath(name string, rest ...string) string {
	return c.path(podKind(), podKind().versions[0], append([]string{name}, rest...)...)
}

const (
	// discoveryAge is how long the answer is used which version of a group is served.
	discoveryAge = time.Minute
	createsJobs  = "job"
)

// version is which version of a kind is served; "" for none that is known here.
func (c *Client) version(ctx context.Context, op string, k kind) (string, error) {
	if !k.discovered {
		return k.versions[0], nil
	}
	if base, is := kindNamed(k.with); is { // a cluster without that has none of it
		if served, err := c.version(ctx, op, base); err != nil || served == "" {
			return "", err
		}
	}
	if known, ok := c.knownVersion(k); ok {
		return known, nil
	}
	select {
	case c.discovers <- struct{}{}:
		defer func() { <-c.discovers }()
	case <-ctx.Done():
		return "", wirekit.ContextFault(ctx)
	}
	if known, ok := c.knownVersion(k); ok { // another call has asked meanwhile
		return known, nil
	}
	return c.discover(ctx, op, k)
}

// knownVersion is the version that was served a moment ago.
func (c *Client) knownVersion(k kind) (version string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, has := c.served[k.group]
	return d.version, has && c.Now().Sub(d.at) < discoveryAge
}

func (c *Client) discover(ctx context.Context, op string, k kind) (string, error) {
	var w wireGroup
	_, err := c.API.JSON(ctx, httpx.Request{Op: op, Path: httpx.Path("apis", k.group)}, &w)
	if err != nil && !httpx.AnsweredMissing(err) {
		return "", err
	}
	known := discovery{at: c.Now()}
	for _, v := range slices.Backward(k.versions) {
		if slices.ContainsFunc(w.Versions, func(o wireVersion) bool { return o.Version == v }) {
			known.version = v
		}
	}
	if err == nil && known.version == "" {
		return "", c.Fault(fault.KindUnsupported, op, "the cluster serves %s in no version that sbx knows", cmp.Or(w.Name, k.group)).
			WithHint("sbx knows %s; `kinds` of the profile leaves the kind out", strings.Join(k.versions, " and "))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.served[k.group] = known
	return known.version, nil
}
