package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

const metricsGroup = "metrics.k8s.io"

// metricsPath is the address of the samples of the namespace, or of one pod.
func (c *Client) metricsPath(name ...string) string {
	return httpx.Path(slices.Concat([]string{"apis", metricsGroup, "v1beta1", "namespaces", c.at.namespace, "pods"}, name)...)
}

// Usage reads the last sample of the metrics server, which is 15 seconds old or more. A new pod has none for a
// minute, and a cluster without that server has none at all: then nothing is known.
func (c *Client) Usage(ctx context.Context, id string) (sandbox.Usage, error) {
	op := "usage " + id
	o, err := c.readIfNotWatched(ctx, "usage", id)
	if err != nil {
		return sandbox.Usage{}, err
	}
	limits := o.limits()
	pod, has := o.pod()
	if state, raw := o.state(); !has || state != sandbox.StateRunning {
		return sandbox.Usage{At: c.Now(), Source: "API (it is " + raw + ")", MemoryLimitBytes: limits.MemoryBytes}, nil
	}
	var m wireMetrics
	_, err = c.API.JSON(ctx, httpx.Request{Op: op, Path: c.metricsPath(pod.Metadata.Name), OneSandbox: true}, &m) // a server of its own answers
	switch named, ofPod := namedMissing(err); {
	case httpx.AnsweredMissing(err) && !ofPod: // no such API
		return sandbox.Usage{}, c.Fault(fault.KindUnsupported, op, "the cluster has no metrics server")
	case ofPod && named != pod.Metadata.Name:
		return sandbox.Usage{}, providers.WrongSandbox(c.Profile, op, pod.Metadata.Name, named)
	case ofPod:
		return sandbox.Usage{At: c.Now(), Source: "metrics server (it has no sample of the pod)", MemoryLimitBytes: limits.MemoryBytes}, nil
	case err == nil:
		err = providers.CheckAnswerID(c.Profile, op, pod.Metadata.Name, m.Metadata.Name)
	}
	if err != nil {
		return sandbox.Usage{}, err
	}
	u := m.usage(limits)
	if u.At.IsZero() {
		u.At = c.Now()
	}
	return u, nil
}

// usage converts a sample: the sum of all containers.
func (m wireMetrics) usage(limits sandbox.Limits) sandbox.Usage {
	u := sandbox.Usage{At: providers.ValidTime(m.Timestamp.UTC()), Source: "metrics server", MemoryLimitBytes: limits.MemoryBytes}
	var cpu, memory float64
	var hasCPU, hasMemory bool
	for _, container := range m.Containers {
		if n := quantity(container.Usage["cpu"]); n != nil {
			cpu, hasCPU = cpu+*n*100, true
		}
		if n := quantity(container.Usage["memory"]); n != nil {
			memory, hasMemory = memory+*n, true
		}
	}
	if hasCPU {
		u.CPUPercent = providers.ValidPercent(&cpu)
	}
	if hasMemory && memory > 0 {
		u.MemoryBytes = providers.ValidBytes(wholeNumber(&memory))
	}
	return u
}

// missingName is what a 404 of the API says of an object; a metrics server puts the namespace before the name.
var missingName = regexp.MustCompile(`"(?:[^"/]*/)?([^"/]+)" not found`)

// namedMissing is the object that a 404 names. It names none where the API itself is missing.
func namedMissing(err error) (name string, has bool) {
	if !httpx.AnsweredMissing(err) {
		return "", false
	}
	m := missingName.FindStringSubmatch(httpx.StatusOf(err).Message)
	if m == nil {
		return "", false
	}
	return m[1], true
}

const (
	shortestScrape = 15 * time.Second // between two samples of a metrics server (its --metric-resolution)
	longestScrape  = time.Minute      // the same of an older one
	// freshScrapes is how many of these a sample may be old that shows the present.
	freshScrapes = 3
)

// UsageBatch is no limit: one list has the samples of a whole namespace.
func (c *Client) UsageBatch() int { return mostViewed }

// UsageOfMany lists the samples of the namespace, and its pods, of which the samples have no unique id. A metrics server
// leaves out what it has no sample of. What is left out here, too, is read by itself: a sandbox whose pod does not run,
// and one whose sample is old, is of an earlier pod of the name, or lacks the main container.
func (c *Client) UsageOfMany(ctx context.Context, ids []string) (map[string]sandbox.Usage, error) {
	const op = "usage of several sandboxes"
	pages := len(ids) // more would cost more than to read each one
	samples, err := c.samples(ctx, op, &pages)
	if err != nil && len(samples) == 0 {
		return nil, err
	}
	objects, whole, failed := c.podsOfMany(ctx, op, ids, &pages)
	found := map[string]sandbox.Usage{}
	for id, o := range objects {
		if u, fresh := c.presentUsage(o, samples); fresh && (whole || o.pods[0].isNamed(id)) { // else another of its pods may count
			found[id] = u
		}
	}
	return found, errors.Join(err, failed)
}

// samples are the samples of the pods of the namespace, by name. Of a name that comes twice there is none.
func (c *Client) samples(ctx context.Context, op string, pages *int) (map[string]wireMetrics, error) {
	samples, twice := map[string]wireMetrics{}, map[string]bool{}
	_, err := eachPage(ctx, c, httpx.Request{Op: op, Path: c.metricsPath()}, pages, func(m wireMetrics) string { return m.Metadata.Name }, func(m wireMetrics) {
		if _, has := samples[m.Metadata.Name]; has {
			twice[m.Metadata.Name] = true
		}
		if space := m.Metadata.Namespace; space == "" || space == c.at.namespace {
			samples[m.Metadata.Name] = m
		}
	})
	for name := range twice {
		delete(samples, name)
	}
	if status := httpx.Status(err); status == http.StatusNotFound || status == http.StatusForbidden && fault.KindOf(err) == fault.KindAuth {
		return nil, c.Fault(fault.KindUnsupported, op, "the metrics server does not list samples here: %w", err)
	}
	return samples, err
}

// isNamed says that an id is that of the pod itself.
func (w wireObject) isNamed(id string) bool { return idOf(podKind(), w.Metadata) == id }

// podsOfMany are sandboxes with those of their pods that the API lists now, by id; whole = these are all of them.
func (c *Client) podsOfMany(ctx context.Context, op string, ids []string, pages *int) (objects map[string]*object, whole bool, err error) {
	wanted := map[string]objectID{} // by the beginning of the unique id
	spelled := map[string]string{}
	for _, id := range ids {
		if parsed, is := parseID(id); is {
			wanted[parsed.uid], spelled[parsed.uid] = parsed, id
		}
	}
	objects = map[string]*object{}
	whole, err = eachPage(ctx, c, httpx.Request{Op: op, Path: c.path(podKind(), podKind().versions[0])}, pages, func(w wireObject) string { return w.Metadata.UID }, func(w wireObject) {
		for _, owner := range w.owners() {
			id, is := wanted[shortUID(owner)]
			if !is || !id.mayOwn(w, owner) {
				continue
			}
			o := objects[spelled[id.uid]]
			if o == nil {
				o = &object{kind: podKind(), wireObject: w}
				objects[spelled[id.uid]] = o
			}
			o.pods = append(o.pods, w)
		}
	})
	return objects, whole && err == nil, err
}

// mayOwn is false where a pod says that what has the unique id has another name.
func (id objectID) mayOwn(w wireObject, uid string) bool {
	if owner, is := w.Metadata.controller(); is && owner.UID == uid {
		return owner.Name == id.name
	}
	return w.Metadata.UID != uid || w.Metadata.Name == id.name
}

// presentUsage is the sample of the pod that counts of a sandbox; false where it does not show the present.
func (c *Client) presentUsage(o *object, samples map[string]wireMetrics) (sandbox.Usage, bool) {
	pod, _ := o.pod()
	o.wireObject = pod
	m, has := samples[pod.Metadata.Name]
	if state, _ := o.state(); !has || state != sandbox.StateRunning || pod.Status.Phase != "Running" {
		return sandbox.Usage{}, false
	}
	main, _ := o.mainContainer()
	i := slices.IndexFunc(m.Containers, func(container wireUsage) bool { return container.Name == main.Name })
	u := m.usage(o.limits())
	scrape, _ := time.ParseDuration(m.Window)
	age := c.ServerNow().Sub(u.At)
	switch {
	case i < 0, quantity(m.Containers[i].Usage["cpu"]) == nil, !u.HasProcessor(), u.MemoryBytes == nil:
	case u.At.IsZero(), age > freshScrapes*min(max(scrape, shortestScrape), longestScrape), age < -longestScrape:
	case u.At.Before(pod.Metadata.CreationTimestamp): // of an earlier pod of this name
	default:
		return u, true
	}
	return sandbox.Usage{}, false
}

// eachPage gives the rows of a list, page by page, each as often as it comes, until so many pages were read as may be;
// whole = these were all.
func eachPage[R any](ctx context.Context, c *Client, list httpx.Request, pages *int, id func(R) string, take func(R)) (whole bool, err error) {
	whole = true
	err = wirekit.EachRow(c.Profile, list.Op, func(token string) (wirekit.Page[R], error) {
		page, _, err := readPage(ctx, c, list, token, id)
		for _, row := range page.Rows {
			take(row)
		}
		if *pages--; *pages <= 0 && page.Next != "" {
			page.Next, whole = "", false
		}
		return page, err
	}, id, func(R) bool { return true })
	return whole, err
}
