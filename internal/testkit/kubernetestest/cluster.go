package kubernetestest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sbx/internal/testkit/wiretest"
)

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
