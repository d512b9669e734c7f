package kubernetestest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/testkit/wiretest"
)

// root is where the objects of a kind are.
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

// movable are the fields of a specification that a patch of sbx may change. That of a pod can only be made smaller
// (kubernetes/kubernetes#69009).
func movable(plural string) []string {
	return map[string][]string{"jobs": {"activeDeadlineSeconds"}, "sandboxes": {"shutdownTime"}, "sandboxclaims": {"lifecycle"}}[plural]
}

// servePatch merges labels, annotations and the end: null removes.
func (f *Fake) servePatch(w http.ResponseWriter, r *http.Request, o *thing) {
	var body struct {
		Metadata struct {
			ResourceVersion     string
			Labels, Annotations map[string]*string
		}
		Spec map[string]any
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
	for _, value := range body.Metadata.Labels {
		if value != nil && !labelValue().MatchString(*value) {
			refuse(w, http.StatusUnprocessableEntity, "Invalid", "metadata.labels: Invalid value: %q", *value)
			return
		}
	}
	f.checkFields(o.plural, body.Spec, movable(o.plural))
	if !f.o.KeepsEnd {
		o.spec = mergedSpec(o.spec, body.Spec)
	}
	o.labels, o.annotations = mergedTexts(o.labels, body.Metadata.Labels), mergedTexts(o.annotations, body.Metadata.Annotations)
	f.touch(o)
	wiretest.JSON(w, http.StatusOK, f.show(o))
}

// mergedTexts are labels or annotations behind a patch: null removes.
func mergedTexts(into map[string]string, change map[string]*string) map[string]string {
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

// mergedSpec is a specification behind a merge patch, whose objects are merged one level deep.
func mergedSpec(spec, change map[string]any) map[string]any {
	spec = maps.Clone(spec)
	for key, value := range change {
		if part, is := value.(map[string]any); is {
			merged := map[string]any{}
			if before, has := spec[key].(map[string]any); has {
				maps.Copy(merged, before)
			}
			maps.Copy(merged, part)
			value = merged
		}
		spec[key] = value
	}
	return spec
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

// encode panics for what cannot be JSON, which fails the test.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
