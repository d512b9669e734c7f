package kubernetestest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/testkit/wiretest"
)

// page is what a token stands for: the rest of a list, as of one moment.
type page struct {
	rows    []any
	version int
}

// Root is where the objects of a kind are.
func root(plural, sandboxVersion string) string {
	switch plural {
	case "jobs":
		return "/apis/batch/v1/namespaces/{ns}/jobs"
	case "sandboxes":
		return "/apis/agents.x-k8s.io/" + sandboxVersion + "/namespaces/{ns}/sandboxes"
	case "sandboxclaims", "sandboxwarmpools":
		return "/apis/extensions.agents.x-k8s.io/" + sandboxVersion + "/namespaces/{ns}/" + plural
	}
	return "/api/v1/namespaces/{ns}/" + plural
}

func (f *Fake) allRoutes() []wiretest.Route {
	var all []wiretest.Route
	add := func(verb, resource string, r wiretest.Route) {
		r.Serve = f.answer(verb, resource, r.Serve)
		r.Changes = r.Method != http.MethodGet && resource != "selfsubjectrulesreviews"
		all = append(all, r)
	}
	paging := []string{"limit", "continue", "labelSelector", "watch", "allowWatchBookmarks", "resourceVersion"}
	deletion := []string{"kind", "apiVersion", "gracePeriodSeconds", "propagationPolicy", "preconditions", "dryRun"}
	for _, plural := range []string{"pods", "jobs", "sandboxes", "sandboxclaims", "sandboxwarmpools"} {
		at := root(plural, f.sandboxVersion())
		on := func(serve func(http.ResponseWriter, *http.Request, *thing)) http.HandlerFunc {
			return f.on(plural, serve)
		}
		add("list", plural, wiretest.Route{Method: "GET", Path: at, Query: paging, Serve: f.serveList(plural)})
		add("get", plural, wiretest.Route{Method: "GET", Path: at + "/{name}", Serve: on(f.serveGet)})
		add("delete", plural, wiretest.Route{Method: "DELETE", Path: at + "/{name}", Fields: deletion, Serve: on(f.serveDelete)})
		add("patch", plural, wiretest.Route{Method: "PATCH", Path: at + "/{name}", Raw: true, Serve: on(f.servePatch)})
		if plural == "jobs" || plural == "sandboxes" {
			add("create", plural, wiretest.Route{Method: "POST", Path: at, Fields: []string{"apiVersion", "kind", "metadata", "spec"}, Serve: f.serveCreate(plural)})
		}
	}
	pod := root("pods", "") + "/{name}"
	onPod := func(serve func(http.ResponseWriter, *http.Request, *thing)) http.HandlerFunc {
		return f.on("pods", serve)
	}
	add("get", "pods/log", wiretest.Route{Method: "GET", Path: pod + "/log", Query: []string{"container", "timestamps", "tailLines", "sinceTime", "follow", "previous", "limitBytes"}, Serve: onPod(f.serveLog)})
	add("get", "pods/exec", wiretest.Route{Method: "GET", Path: pod + "/exec", Query: []string{"command", "command...", "container", "stdin", "stdout", "stderr", "tty"}, Serve: onPod(f.serveExec)})
	for _, group := range []string{"agents.x-k8s.io", "extensions.agents.x-k8s.io"} {
		add("", "groups", wiretest.Route{Method: "GET", Path: "/apis/" + group, Serve: f.serveGroup(group)})
	}
	add("", "version", wiretest.Route{Method: "GET", Path: "/version", Serve: f.serveVersion})
	add("", "selfsubjectrulesreviews", wiretest.Route{Method: "POST", Path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", Fields: []string{"apiVersion", "kind", "spec"}, Serve: f.serveRights})
	add("list", "events", wiretest.Route{Method: "GET", Path: "/api/v1/namespaces/{ns}/events", Query: []string{"fieldSelector", "limit", "continue"}, Serve: f.serveEvents})
	add("list", "resourcequotas", wiretest.Route{Method: "GET", Path: "/api/v1/namespaces/{ns}/resourcequotas", Query: []string{"limit"}, Serve: f.serveQuotas})
	add("get", "namespaces", wiretest.Route{Method: "GET", Path: "/api/v1/namespaces/{name}", Serve: f.serveNamespace})
	add("get", "nodes", wiretest.Route{Method: "GET", Path: "/api/v1/nodes/{name}", Serve: f.serveNode})
	add("get", "pods.metrics.k8s.io", wiretest.Route{Method: "GET", Path: "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods/{name}", Serve: f.serveMetrics})
	add("list", "pods.metrics.k8s.io", wiretest.Route{Method: "GET", Path: "/apis/metrics.k8s.io/v1beta1/namespaces/{ns}/pods", Query: []string{"limit", "continue"}, Serve: f.serveManyMetrics})
	return all
}

// answer checks the credential, the namespace and the rights, and holds the lock. Without TLS it is a proxy, as
// `kubectl proxy`, to which no client sends a credential.
func (f *Fake) answer(verb, resource string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.record()
		verb := verb
		if verb == "list" && r.URL.Query().Has("watch") {
			verb = "watch"
		}
		switch ns := r.PathValue("ns"); {
		case r.TLS == nil && r.Header.Get("Authorization") != "":
			f.t.Errorf("a credential is sent without TLS")
		case r.TLS != nil && r.Header.Get("Authorization") != "Bearer "+Token:
			refuse(w, http.StatusUnauthorized, "Unauthorized", "Unauthorized")
		case slices.Contains(f.o.Refuse, verb+" "+resource) || ns != "" && ns != Namespace:
			forbid(w, verb, resource, r.PathValue("name"), ns)
		case groupOf(resource) == "agents.x-k8s.io" && f.o.NoCRD, groupOf(resource) == "extensions.agents.x-k8s.io" && (f.o.NoCRD || f.o.NoClaims):
			http.Error(w, "404 page not found", http.StatusNotFound)
		default:
			serve(w, r)
		}
	}
}

// groupOf is the API group of a resource; "" = the core. Two groups have pods, so that one is written with its group.
func groupOf(resource string) string {
	switch resource {
	case "jobs":
		return "batch"
	case "sandboxes":
		return "agents.x-k8s.io"
	case "sandboxclaims", "sandboxwarmpools":
		return "extensions.agents.x-k8s.io"
	}
	_, group, _ := strings.Cut(resource, ".")
	return group
}

// forbid answers as the authorizer does. What it names first is the object, without the subresource.
func forbid(w http.ResponseWriter, verb, resource, name, ns string) {
	group := groupOf(resource)
	plain := strings.TrimSuffix(resource, "."+group)
	subject, _, _ := strings.Cut(plain, "/")
	if group != "" {
		subject += "." + group
	}
	if name != "" {
		subject = fmt.Sprintf("%s %q", subject, name)
	}
	scope := "at the cluster scope"
	if ns != "" {
		scope = fmt.Sprintf("in the namespace %q", ns)
	}
	refuse(w, http.StatusForbidden, "Forbidden", "%s is forbidden: User \"u\" cannot %s resource %q in API group %q %s", subject, verb, plain, group, scope)
}

func (f *Fake) on(plural string, serve func(http.ResponseWriter, *http.Request, *thing)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o := f.find(plural, r.PathValue("name"))
		if o == nil {
			refuse(w, http.StatusNotFound, "NotFound", "%s %q not found", plural, r.PathValue("name"))
			return
		}
		serve(w, r, o)
	}
}

// serveList answers a page. All pages of a list show the moment of the first.
func (f *Fake) serveList(plural string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Has("watch") {
			f.serveWatch(plural, w, r)
			return
		}
		if q.Has("resourceVersion") || q.Has("allowWatchBookmarks") {
			f.t.Errorf("a list from the cache of the server: %s", r.URL)
		}
		limit, err := strconv.Atoi(q.Get("limit"))
		if err != nil || limit <= 0 {
			refuse(w, http.StatusBadRequest, "BadRequest", "limit: %q", q.Get("limit"))
			return
		}
		if f.o.PageSize > 0 {
			limit = min(limit, f.o.PageSize)
		}
		now, known := f.page(plural, q.Get("continue"), q.Get("labelSelector"))
		switch {
		case q.Get("continue") != "" && f.o.Expired > 0:
			f.o.Expired--
			f.expire(w, q.Get("continue"))
			return
		case !known:
			refuse(w, http.StatusBadRequest, "BadRequest", "continue key is not valid")
			return
		}
		rows, meta := now.rows, map[string]any{"resourceVersion": strconv.Itoa(now.version)}
		if len(rows) > limit {
			token := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":"%s-%d"}`, now.version, plural+q.Get("labelSelector"), len(rows)))
			f.pages[token] = page{rows[limit:], now.version}
			meta["continue"], rows = token, rows[:limit]
		}
		if rows == nil {
			rows = []any{}
		}
		wiretest.JSON(w, http.StatusOK, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": meta, "items": rows})
		f.kubelet()
	}
}

// page is what a token stands for, or the present list.
func (f *Fake) page(plural, token, selector string) (now page, known bool) {
	if token != "" {
		now, known = f.pages[token]
		if f.o.Moves {
			now.version++
		}
		return now, known
	}
	now.version = f.version
	for _, o := range f.things {
		if o.plural == plural && selected(o, selector) {
			now.rows = append(now.rows, f.show(o))
		}
	}
	return now, true
}

// expire answers that a token is too old, with one that shows the rest as it is now.
func (f *Fake) expire(w http.ResponseWriter, token string) {
	rest := f.pages[token]
	f.pages["inconsistent"] = page{rest.rows[min(1, len(rest.rows)):], f.version + 7}
	wiretest.JSON(w, http.StatusGone, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": http.StatusGone, "metadata": map[string]any{"continue": "inconsistent"},
		"message": "The provided continue parameter is too old to display a consistent list result.",
	})
}

// selected says whether an object has the labels of a selector.
func selected(o *thing, selector string) bool {
	for part := range strings.SplitSeq(selector, ",") {
		key, value, exact := strings.Cut(part, "=")
		if got, has := o.labels[key]; key != "" && (!has || exact && got != value) {
			return false
		}
	}
	return true
}

func (f *Fake) serveGet(w http.ResponseWriter, _ *http.Request, o *thing) {
	wiretest.JSON(w, http.StatusOK, f.show(o))
	f.kubelet()
}

func (f *Fake) serveDelete(w http.ResponseWriter, r *http.Request, o *thing) {
	var body struct {
		GracePeriodSeconds *int64
		PropagationPolicy  string
		Preconditions      struct{ UID, ResourceVersion string }
		DryRun             []string
	}
	wiretest.Decode(r, &body)
	rehearsed := slices.Equal(body.DryRun, []string{"All"})
	switch {
	case len(body.DryRun) > 0 && !rehearsed:
		refuse(w, http.StatusUnprocessableEntity, "Invalid", "dryRun: Unsupported value: %q: supported values: \"All\"", body.DryRun)
		return
	case body.GracePeriodSeconds == nil || *body.GracePeriodSeconds < 1:
		f.t.Errorf("a delete without a grace drops the record of what may run on")
	case body.PropagationPolicy != "Foreground":
		f.t.Errorf("a delete with the policy %q says nothing about the pods", body.PropagationPolicy)
	case body.Preconditions.UID == "":
		f.t.Errorf("a delete without a uid may hit another object")
	}
	switch {
	case body.Preconditions.UID != o.uid:
		refuse(w, http.StatusConflict, "Conflict", "Precondition failed: UID in precondition: %s, UID in object meta: %s: the object might have been deleted and then recreated", body.Preconditions.UID, o.uid)
		return
	case body.Preconditions.ResourceVersion != "" && body.Preconditions.ResourceVersion != strconv.Itoa(o.version):
		refuse(w, http.StatusConflict, "Conflict", "Precondition failed: ResourceVersion in precondition: %s, ResourceVersion in object meta: %d", body.Preconditions.ResourceVersion, o.version)
		return
	case f.o.NoDryRun && rehearsed:
		refuse(w, http.StatusBadRequest, "BadRequest", "admission webhook \"guard.example\" does not support dry run")
		return
	case f.o.Deny != 0:
		refuse(w, f.o.Deny, http.StatusText(f.o.Deny), "admission webhook \"guard.example\" denied the request: %s is under legal hold", o.name)
		return
	case rehearsed:
		wiretest.JSON(w, http.StatusOK, f.show(o))
		return
	case f.o.Orphans != 0:
		f.loseThing(o)
		refuse(w, f.o.Orphans, "InternalError", "the server was unable to finish the request")
		return
	case !f.o.Deaf:
		f.end(o, time.Duration(*body.GracePeriodSeconds)*time.Second)
	}
	wiretest.JSON(w, http.StatusOK, f.show(o))
	f.replaceOwned(o)
}

// replaceOwned makes again what was deleted below a controller: the pod of a job, the sandbox of a claim.
func (f *Fake) replaceOwned(o *thing) {
	if o.owner == nil || !o.owner.deleted.IsZero() || f.o.Deaf {
		return
	}
	again := f.newThing(o.plural, o.name+"-again")
	again.owner, again.spec, again.phase = o.owner, o.spec, "Running"
	f.things = append(f.things, again)
}

// servePatch merges labels and annotations: null removes.
func (f *Fake) servePatch(w http.ResponseWriter, r *http.Request, o *thing) {
	var body struct {
		Metadata struct {
			ResourceVersion     string
			Labels, Annotations map[string]*string
		}
	}
	wiretest.Decode(r, &body)
	switch {
	case r.Header.Get("Content-Type") != "application/merge-patch+json":
		refuse(w, http.StatusUnsupportedMediaType, "UnsupportedMediaType", "the body of the request was in an unknown format")
		return
	case body.Metadata.ResourceVersion != strconv.Itoa(o.version):
		refuse(w, http.StatusConflict, "Conflict", "the object has been modified; please apply your changes to the latest version and try again")
		return
	}
	merge := func(into map[string]string, change map[string]*string) map[string]string {
		if into == nil {
			into = map[string]string{}
		}
		for key, value := range change {
			if value == nil {
				delete(into, key)
			} else {
				into[key] = *value
			}
		}
		return into
	}
	for _, value := range body.Metadata.Labels {
		if value != nil && !labelValue().MatchString(*value) {
			refuse(w, http.StatusUnprocessableEntity, "Invalid", "metadata.labels: Invalid value: %q", *value)
			return
		}
	}
	o.labels, o.annotations = merge(o.labels, body.Metadata.Labels), merge(o.annotations, body.Metadata.Annotations)
	f.touch(o)
	wiretest.JSON(w, http.StatusOK, f.show(o))
}

func labelValue() *regexp.Regexp {
	return regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?$`)
}

func objectName() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`) }

func (f *Fake) serveCreate(plural string) http.HandlerFunc {
	specFields := map[string][]string{
		"jobs":      {"template", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"},
		"sandboxes": {"podTemplate", "shutdownTime", "shutdownPolicy"},
	}
	podFields := []string{"containers", "restartPolicy", "runtimeClassName", "automountServiceAccountToken", "terminationGracePeriodSeconds"}
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			APIVersion, Kind string
			Metadata         struct {
				Name                string
				Labels, Annotations map[string]string
			}
			Spec map[string]any
		}
		wiretest.Decode(r, &body)
		o := f.newThing(plural, body.Metadata.Name)
		o.labels, o.annotations, o.spec = body.Metadata.Labels, body.Metadata.Annotations, body.Spec
		template, _ := body.Spec["template"].(map[string]any)
		if plural == "sandboxes" {
			template, _ = body.Spec["podTemplate"].(map[string]any)
		}
		pod, _ := template["spec"].(map[string]any)
		f.checkFields(plural, body.Spec, specFields[plural])
		f.checkFields("pod", pod, podFields)
		if body.Kind != o.kind || body.APIVersion != o.api {
			refuse(w, http.StatusBadRequest, "BadRequest", "%s/%s is no %s", body.APIVersion, body.Kind, o.kind)
			return
		}
		for _, value := range o.labels {
			if !labelValue().MatchString(value) {
				refuse(w, http.StatusUnprocessableEntity, "Invalid", "metadata.labels: Invalid value: %q", value)
				return
			}
		}
		switch {
		case !objectName().MatchString(o.name):
			refuse(w, http.StatusUnprocessableEntity, "Invalid", "metadata.name: Invalid value: %q", o.name)
			return
		case pod["containers"] == nil || pod["restartPolicy"] != "Never":
			refuse(w, http.StatusUnprocessableEntity, "Invalid", "spec.template.spec: Required value")
			return
		case f.find(plural, o.name) != nil:
			refuse(w, http.StatusConflict, "AlreadyExists", "%s %q already exists", plural, o.name)
			return
		}
		if f.o.NoPods != "" {
			f.things = append(f.things, o)
			if plural == "jobs" { // the controller of agent-sandbox says it in a condition alone
				f.note(o, "FailedCreate", "Error creating: "+f.o.NoPods)
			}
			wiretest.JSON(w, http.StatusCreated, f.show(o))
			return
		}
		p := f.newPodOf(o)
		f.things = append(f.things, o, p)
		f.note(p, "Scheduled", "Successfully assigned "+p.name+" to "+Node)
		wiretest.JSON(w, http.StatusCreated, f.show(o))
		f.kubelet()
	}
}

// checkFields fails the test for a field that the API does not have.
func (f *Fake) checkFields(of string, fields map[string]any, known []string) {
	for key := range fields {
		if !slices.Contains(known, key) {
			f.t.Errorf("unknown field %s of %s", key, of)
		}
	}
}

func (f *Fake) serveGroup(group string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if f.o.NoCRD || f.o.NoClaims && group != "agents.x-k8s.io" {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		versions := []any{}
		for _, v := range []string{"v1beta1", "v1alpha1"} {
			if !f.o.Alpha || v == "v1alpha1" {
				versions = append(versions, map[string]any{"groupVersion": group + "/" + v, "version": v})
			}
		}
		wiretest.JSON(w, http.StatusOK, map[string]any{"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions, "preferredVersion": versions[0]})
	}
}

func (f *Fake) serveVersion(w http.ResponseWriter, _ *http.Request) {
	wiretest.JSON(w, http.StatusOK, map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"})
}

// serveRights lists the rights that RBAC does not refuse.
func (f *Fake) serveRights(w http.ResponseWriter, r *http.Request) {
	var body struct{ Spec struct{ Namespace string } }
	wiretest.Decode(r, &body)
	rules := []any{}
	for _, verb := range []string{"get", "list", "watch", "create", "patch", "delete"} {
		for _, resource := range []string{"pods", "pods/log", "pods/exec", "jobs", "events", "resourcequotas", "sandboxes", "sandboxclaims", "sandboxwarmpools", "pods.metrics.k8s.io"} {
			if group := groupOf(resource); !slices.Contains(f.o.Refuse, verb+" "+resource) {
				rules = append(rules, map[string]any{"verbs": []string{verb}, "apiGroups": []string{group}, "resources": []string{strings.TrimSuffix(resource, "."+group)}})
			}
		}
	}
	wiretest.JSON(w, http.StatusCreated, map[string]any{"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1", "metadata": map[string]any{}, "spec": map[string]any{}, "status": map[string]any{"resourceRules": rules, "nonResourceRules": []any{}, "incomplete": body.Spec.Namespace != Namespace}})
}

func (f *Fake) serveEvents(w http.ResponseWriter, r *http.Request) {
	uid, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "involvedObject.uid=")
	if !ok {
		refuse(w, http.StatusBadRequest, "BadRequest", "fieldSelector: %q", r.URL.Query().Get("fieldSelector"))
		return
	}
	rows := []any{}
	for _, e := range f.events {
		if of, _ := e["involvedObject"].(map[string]any); of["uid"] == uid {
			rows = append(rows, e)
		}
	}
	meta, limit := map[string]any{"resourceVersion": strconv.Itoa(f.version)}, len(rows)
	if n, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && n > 0 {
		limit = n
	}
	begin, _ := strconv.Atoi(r.URL.Query().Get("continue")) // without one it is the first page
	if rows = rows[min(begin, len(rows)):]; len(rows) > limit {
		rows, meta["continue"] = rows[:limit], strconv.Itoa(begin+limit)
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"kind": "EventList", "apiVersion": "v1", "metadata": meta, "items": rows})
}

func (f *Fake) serveQuotas(w http.ResponseWriter, _ *http.Request) {
	quota := map[string]any{"metadata": map[string]any{"name": "agents", "uid": "aaaaaaaa-0000-4000-8000-000000000000"}, "status": map[string]any{
		"hard": map[string]string{"requests.cpu": "16", "limits.memory": "32Gi", "pods": "50"}, "used": map[string]string{"requests.cpu": "1500m", "limits.memory": "2Gi", "pods": "3"},
	}}
	wiretest.JSON(w, http.StatusOK, map[string]any{"kind": "ResourceQuotaList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": []any{quota}})
}

func (f *Fake) serveNamespace(w http.ResponseWriter, r *http.Request) {
	if f.o.NoSpace || r.PathValue("name") != Namespace {
		refuse(w, http.StatusNotFound, "NotFound", "namespaces %q not found", r.PathValue("name"))
		return
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": Namespace, "uid": "cccccccc-0000-4000-8000-000000000000"}, "status": map[string]any{"phase": "Active"}})
}

func (f *Fake) serveNode(w http.ResponseWriter, r *http.Request) {
	status := "True"
	if f.o.LostNode {
		status = "Unknown"
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"name": r.PathValue("name"), "uid": "bbbbbbbb-0000-4000-8000-000000000000"}, "status": map[string]any{"conditions": []any{condition("Ready", status, "NodeStatusUnknown", "Kubelet stopped posting node status.")}}})
}

// encode panics for what cannot be JSON, which fails the test.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
