package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// pods is the API of Kubernetes as far as `kubectl delete pods --all` uses it. What kubectl asks to
// learn the API costs no time here: it would keep that on disk.
func pods(w *world) http.Handler {
	mux := http.NewServeMux()
	says := func(v any) http.HandlerFunc {
		return func(out http.ResponseWriter, _ *http.Request) { answer(out, http.StatusOK, v) }
	}
	mux.HandleFunc("GET /api", says(map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}))
	mux.HandleFunc("GET /version", says(map[string]any{"major": "1", "minor": "34", "gitVersion": "v1.34.1", "platform": "linux/amd64"}))
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", func(out http.ResponseWriter, _ *http.Request) {
		answer(out, http.StatusCreated, map[string]any{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": map[string]any{}, "status": map[string]any{"allowed": true}})
	})
	mux.HandleFunc("GET /apis", says(map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}}))
	verbs := []string{"delete", "get", "list", "watch"}
	mux.HandleFunc("GET /api/v1", says(map[string]any{
		"kind": "APIResourceList", "groupVersion": "v1",
		"resources": []any{map[string]any{"name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "verbs": verbs}},
	}))
	pod := func(id string, ending bool) map[string]any {
		meta := map[string]any{"name": id, "namespace": "default", "uid": id, "resourceVersion": "1", "creationTimestamp": w.born.UTC().Format(time.RFC3339)}
		if ending {
			meta["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		}
		return map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": meta, "status": map[string]any{"phase": "Running"}}
	}
	list := w.serving(func(out http.ResponseWriter, r *http.Request) {
		rows := []any{}
		for _, id := range w.living() {
			if only := r.URL.Query().Get("fieldSelector"); only == "" || only == "metadata.name="+id {
				_, ending := w.find(id)
				rows = append(rows, pod(id, ending))
			}
		}
		answer(out, http.StatusOK, map[string]any{"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": "1"}, "items": rows})
	})
	mux.HandleFunc("GET /api/v1/namespaces/default/pods", func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			list(out, r)
			return
		}
		w.serving(func(out http.ResponseWriter, _ *http.Request) {})(out, r)
		id := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
		w.gone(r, id)
		_ = json.NewEncoder(out).Encode(map[string]any{"type": "DELETED", "object": pod(id, true)}) // it may have gone
	})
	mux.HandleFunc("/api/v1/namespaces/default/pods/{id}", w.serving(func(out http.ResponseWriter, r *http.Request) {
		there, ending := w.find(r.PathValue("id"))
		switch {
		case !there:
			answer(out, http.StatusNotFound, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})
			return
		case r.Method == http.MethodDelete:
			ending = w.end(r.PathValue("id"))
		}
		answer(out, http.StatusOK, pod(r.PathValue("id"), ending))
	}))
	return mux
}

// gone returns when a thing is gone, or when nobody waits for it any more.
func (w *world) gone(r *http.Request, id string) {
	for there, _ := w.find(id); there && r.Context().Err() == nil; there, _ = w.find(id) {
		time.Sleep(time.Millisecond)
	}
}

// containers is the API of the Docker Engine as far as `docker rm -f` uses it.
func containers(w *world) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/_ping", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Api-Version", "1.47")
		out.Header().Set("Ostype", "linux")
	})
	mux.HandleFunc("DELETE /{version}/containers/{id}", w.serving(func(out http.ResponseWriter, r *http.Request) {
		if !w.end(r.PathValue("id")) {
			answer(out, http.StatusNotFound, map[string]string{"message": "No such container"})
			return
		}
		out.WriteHeader(http.StatusNoContent)
	}))
	return mux
}
