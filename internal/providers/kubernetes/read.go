package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/wirekit"
	"sbx/internal/sandbox"
)

// Probe starts a shell in what runs.
func (c *Client) Probe(ctx context.Context, id string) (providers.Health, error) {
	op := "probe " + id
	o, err := c.readFollowed(ctx, "probe", id)
	if err != nil {
		return providers.Health{}, err
	}
	state, raw := o.state()
	h := wirekit.StateHealth(state, c.Evidence("state", raw, "API"))
	if n := o.mainStatus().RestartCount; n > 0 {
		h.Evidence = append(h.Evidence, c.Evidence("restarts", strconv.Itoa(n), "kubelet"))
	}
	if state != sandbox.StateRunning {
		return h, nil
	}
	sh, err := c.shellIn(o, op, nil)
	if err != nil {
		return h, nil //nolint:nilerr // it has no pod, which its state says
	}
	code := 0
	if !c.answersLook(ctx, o, op) {
		_, code, err = sh(ctx, ":")
	}
	return c.WithShell(h, code, err), nil
}

// answersLook is true where the same look has a command inside anyway, and it has answered.
func (c *Client) answersLook(ctx context.Context, o object, op string) bool {
	if httpx.LookNotes(ctx) == nil || !madeBySbx(o.Metadata) {
		return false
	}
	_, err := c.mainExit(ctx, o, op)
	return err == nil
}

// Events reads what the API remembers of the object and its pods, mostly for an hour.
func (c *Client) Events(ctx context.Context, id string) ([]sandbox.Event, error) {
	op := "events " + id
	o, err := c.read(ctx, "events", id)
	if err != nil {
		return nil, err
	}
	all := []sandbox.Event{{At: o.Metadata.CreationTimestamp.UTC(), Event: "created"}}
	uids := []string{o.Metadata.UID}
	for _, p := range o.pods {
		if !slices.Contains(uids, p.Metadata.UID) {
			uids = append(uids, p.Metadata.UID)
		}
	}
	for _, uid := range uids {
		err = cmp.Or(err, c.eachEvent(ctx, op, uid, func(e wireEvent) bool {
			if at := e.at(); !at.IsZero() {
				all = append(all, sandbox.Event{At: at, Event: e.Reason, Detail: words(e.Message, e.repeats())})
			}
			return true
		}))
	}
	slices.SortStableFunc(all, func(a, b sandbox.Event) int { return a.At.Compare(b.At) })
	return all, err
}

// eachEvent gives the events of an object, which come in the order of their names.
func (c *Client) eachEvent(ctx context.Context, op, uid string, take func(wireEvent) bool) error {
	r := httpx.Request{
		Op: op, Path: httpx.Path("api", "v1", "namespaces", c.at.namespace, "events"), Query: url.Values{"fieldSelector": {"involvedObject.uid=" + uid}},
	}
	id := func(e wireEvent) string { return e.Metadata.UID }
	return wirekit.EachRow(c.Profile, op, func(token string) (wirekit.Page[wireEvent], error) {
		page, _, err := readPage(ctx, c, r, token, id)
		return page, err
	}, id, take)
}

// at is when it was last seen; events of newer reporters have one time only.
func (e wireEvent) at() time.Time {
	for _, at := range []time.Time{e.LastTimestamp, e.EventTime, e.FirstTimestamp, e.Metadata.CreationTimestamp} {
		if at = providers.ValidTime(at.UTC()); !at.IsZero() {
			return at
		}
	}
	return time.Time{}
}

func (e wireEvent) repeats() string {
	if e.Count > 1 {
		return strconv.Itoa(e.Count) + " times"
	}
	return ""
}

// Quota are the quotas of the namespace. One without any has no limit that the API can report.
func (c *Client) Quota(ctx context.Context) ([]providers.Quota, error) {
	var w wireList[wireObject]
	if _, err := c.API.JSON(ctx, httpx.Request{Op: "quota", Path: httpx.Path("api", "v1", "namespaces", c.at.namespace, "resourcequotas"), Query: url.Values{"limit": {strconv.Itoa(pageSize)}}}, &w); err != nil {
		return nil, c.ListFault(err, "quota", "check the namespace "+c.at.namespace)
	}
	rows, err := w.Items.Named(func(o wireObject) string { return o.Metadata.Name })
	if err != nil {
		return nil, fault.Placed(err, c.Profile, "quota")
	}
	all := []providers.Quota{}
	for _, row := range rows {
		for name, limit := range row.Status.Hard {
			unit, scale := "objects", 1.0
			switch resource := strings.TrimPrefix(strings.TrimPrefix(name, "limits."), "requests."); resource {
			case "cpu":
				unit = "cores"
			case "memory", "ephemeral-storage", "storage":
				unit, scale = "MiB", sandbox.MiB
			}
			all = append(all, providers.Quota{Name: name, Scope: row.Metadata.Name, Unit: unit, Limit: scaled(limit, scale), Used: scaled(row.Status.Used[name], scale)})
		}
	}
	slices.SortFunc(all, func(a, b providers.Quota) int {
		return cmp.Or(strings.Compare(a.Scope, b.Scope), strings.Compare(a.Name, b.Name))
	})
	if len(all) == 0 {
		return nil, c.Fault(fault.KindUnsupported, "quota", "the namespace %s has no ResourceQuota, so that no limit is known", c.at.namespace)
	}
	return all, nil
}

func scaled(text string, by float64) *float64 {
	n := quantity(text)
	if n == nil {
		return nil
	}
	return new(*n / by)
}

// rightsHint is what to do about a missing right.
const rightsHint = "give the account the Role of deploy/kubernetes-role.yaml"

// need is what a verb of sbx needs of the API: a verb of a rule, and a resource (kubernetes.io, authorization
// overview).
type need struct {
	verb, group, resource, verbOfSbx string

	of kind // which the profile lists and the cluster serves; none = any
}

// needs are the rights of all verbs of sbx.
func needs() []need {
	uses := map[string]string{"list": "ls", "watch": "ls --watch", "get": "inspect", "create": "create", "delete": "terminate", "patch": "keep"}
	var all []need
	for _, k := range kinds() {
		for _, verb := range k.verbs {
			n := need{verb, k.group, k.plural, uses[verb], k}
			switch {
			case k.pool:
				n.verbOfSbx = "doctor"
			case verb == "list" && k.name == podKind().name: // what owns pods needs it, too
				n.of = kind{}
			}
			all = append(all, n)
		}
	}
	return append(all,
		need{verb: "get", resource: "pods/log", verbOfSbx: "logs"},
		need{verb: "get", resource: "pods/exec", verbOfSbx: "exec"},
		need{verb: "create", resource: "pods/exec", verbOfSbx: "exec"},
		need{verb: "list", resource: "events", verbOfSbx: "inspect"},
		need{verb: "list", resource: "resourcequotas", verbOfSbx: "doctor"},
		need{verb: "get", group: metricsGroup, resource: "pods", verbOfSbx: "top"},
		need{verb: "list", group: metricsGroup, resource: "pods", verbOfSbx: "top"},
	)
}

// Check checks the profile: the API server, the rights of the account in the namespace, and clocks.
func (c *Client) Check(ctx context.Context) []providers.Check {
	var v wireServer
	if _, err := c.API.JSON(ctx, httpx.Request{Op: "version", Path: "/version"}, &v); err != nil {
		return []providers.Check{wirekit.FailedCheck("API server", err)}
	}
	found := []providers.Check{{
		Check: "API server", Verdict: sandbox.True,
		Message: fmt.Sprintf("Kubernetes %s at %s, context %s, namespace %s", v.GitVersion, c.at.base, cmp.Or(c.at.context, "of the pod"), c.at.namespace),
	}}
	var review wireReview
	_, err := c.API.JSON(ctx, httpx.Request{
		Op: "rights", Method: http.MethodPost, Path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", Again: true,
		JSON: map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": map[string]string{"namespace": c.at.namespace}},
	}, &review)
	if err != nil {
		return append(found, wirekit.FailedCheck("rights", err))
	}
	var missing []string
	for _, n := range needs() {
		used, err := c.uses(ctx, n.of)
		if err != nil {
			return append(found, wirekit.FailedCheck("kinds", err))
		}
		if used && !n.of.pool && !slices.ContainsFunc(review.Status.ResourceRules, n.meets) {
			missing = append(missing, fmt.Sprintf("%s %s (sbx %s)", n.verb, n.resource, n.verbOfSbx))
		}
	}
	rights := providers.Check{Check: "rights", Verdict: sandbox.True, Message: "the account has every right that sbx uses"}
	switch {
	case len(missing) > 0 && review.Status.Incomplete:
		rights = providers.Check{
			Check: "rights", Verdict: sandbox.Unknown, Message: "the list of rights is incomplete; not in it: " + strings.Join(missing, ", "), Info: true,
		}
	case len(missing) > 0:
		rights = providers.Check{
			Check: "rights", Verdict: sandbox.False, Message: "missing in the namespace: " + strings.Join(missing, ", "),
			Hint: rightsHint + ", or leave kinds out with `kinds` of the profile",
		}
	}
	return append(append(found, rights, providers.CheckClock(c.API)), c.checkPools(ctx)...)
}

// checkPools says how much of the stock of each pool is ready; nothing without the right to list pools.
func (c *Client) checkPools(ctx context.Context) (rows []providers.Check) {
	if !c.lists(poolKind()) {
		return nil
	}
	err := c.eachObject(ctx, "pools", poolKind(), nil, func(w wireObject) bool {
		wanted := w.Status.Replicas
		if w.Spec.Replicas != nil {
			wanted = *w.Spec.Replicas
		}
		row := providers.Check{
			Check: "pool " + w.Metadata.Name, Verdict: sandbox.True, Message: fmt.Sprintf("%d of %d ready", w.Status.ReadyReplicas, wanted), Info: true,
		}
		if w.Status.ReadyReplicas < wanted {
			row.Verdict = sandbox.False
		}
		rows = append(rows, row)
		return true
	})
	if err != nil && fault.KindOf(err) != fault.KindAuth {
		rows = append(rows, wirekit.FailedCheck("pools", err))
	}
	return rows
}

// uses says that the profile lists a kind and that the cluster serves it; no kind is always used.
func (c *Client) uses(ctx context.Context, k kind) (bool, error) {
	if k.kind == "" || !c.lists(k) {
		return k.kind == "", nil
	}
	version, err := c.version(ctx, "rights", k)
	return version != "", err
}

// meets says that a rule grants what is needed.
func (n need) meets(r wireRule) bool {
	has := func(list []string, word string) bool {
		return slices.Contains(list, word) || slices.Contains(list, "*")
	}
	return has(r.Verbs, n.verb) && has(r.APIGroups, n.group) && has(r.Resources, n.resource)
}
