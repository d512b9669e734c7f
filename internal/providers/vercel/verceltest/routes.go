package verceltest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/providers/wiretest"
)

func (f *Fake) routes() []wiretest.Route {
	scope := []string{"teamId", "slug"}
	route := func(method, path string, query []string, serve http.HandlerFunc) wiretest.Route {
		return wiretest.Route{
			Method: method, Path: path, Query: append(slices.Clone(scope), query...), Headers: []string{"Authorization"},
			Serve: f.authorized(serve), Changes: method != http.MethodGet,
		}
	}
	create := []string{"projectId", "name", "timeout", "persistent", "runtime", "image", "source", "resources", "tags", "env"}
	one, two := route("POST", "/v2/sandboxes", nil, f.create), route("POST", "/v3/sandboxes", nil, f.create)
	one.Fields, two.Fields = create, create
	run := route("POST", "/v2/sandboxes/sessions/{id}/cmd", nil, f.unlocked(f.run))
	run.Fields, run.Changes = []string{"command", "args", "cwd", "env", "wait", "logs", "timeout", "sudo"}, false // it needs a running session and does not lengthen it
	kill := route("POST", "/v2/sandboxes/sessions/{id}/cmd/{cmd}/kill", nil, f.kill)
	kill.Fields, kill.Changes = []string{"signal"}, false
	write := route("POST", "/v2/sandboxes/sessions/{id}/fs/write", nil, f.write)
	write.Raw, write.Changes = true, false
	return []wiretest.Route{
		one, two, run, kill, write,
		route("GET", "/v2/sandboxes", []string{"project", "limit", "cursor", "sortBy", "sortOrder", "status", "tags"}, f.list),
		route("GET", "/v2/sandboxes/{name}", []string{"projectId", "resume"}, f.get),
		route("DELETE", "/v2/sandboxes/{name}", []string{"projectId"}, f.delete),
		route("GET", "/v2/sandboxes/sessions/{id}", nil, f.getSession),
		route("POST", "/v2/sandboxes/sessions/{id}/stop", nil, f.stop),
		route("GET", "/v2/sandboxes/sessions/{id}/cmd", nil, f.listCommands),
		route("GET", "/v2/sandboxes/sessions/{id}/cmd/{cmd}", nil, f.getCommand),
		route("GET", "/v2/sandboxes/sessions/{id}/cmd/{cmd}/logs", nil, f.unlocked(f.logs)),
		route("GET", "/v2/sandboxes/snapshots/{id}", nil, f.getSnapshot),
	}
}

func (f *Fake) authorized(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.Header.Get("Authorization") != "Bearer "+Token:
			refuse(w, http.StatusUnauthorized, "unauthorized", "bad token")
			return
		case q.Get("teamId") != Team:
			refuse(w, http.StatusForbidden, "forbidden", "no such team")
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		serve(w, r)
	}
}

// unlocked lets a route stream without holding the fake.
func (f *Fake) unlocked(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Unlock()
		defer f.mu.Lock()
		serve(w, r)
	}
}

func (f *Fake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("project") != Project {
		refuse(w, http.StatusNotFound, "not_found", "no such project")
		return
	}
	rows := slices.DeleteFunc(slices.Clone(f.boxes), func(b *box) bool { return b.forgotten })
	for _, b := range rows {
		f.settle(b)
	}
	if status := q.Get("status"); status != "" {
		rows = slices.DeleteFunc(rows, func(b *box) bool { return b.current().status != status && !f.o.Hides })
	}
	if key, value, ok := strings.Cut(q.Get("tags"), ":"); ok {
		rows = slices.DeleteFunc(rows, func(b *box) bool { return b.tags[key] != value })
	}
	if q.Get("sortOrder") != "asc" {
		slices.Reverse(rows)
	}
	from, _ := strconv.Atoi(q.Get("cursor"))
	if f.o.Loops {
		from = 0
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	limit = min(max(limit, 1), f.o.PageSize)
	rows = rows[min(from, len(rows)):]
	var next any
	if len(rows) > limit {
		rows, next = rows[:limit], strconv.Itoa(from+limit)
	}
	page := make([]any, 0, len(rows))
	for _, b := range rows {
		page = append(page, f.boxJSON(b))
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"sandboxes": page, "pagination": map[string]any{"count": len(page), "next": next}})
}

func (f *Fake) get(w http.ResponseWriter, r *http.Request) {
	b := f.named(r.PathValue("name"))
	if b == nil {
		refuse(w, http.StatusNotFound, "not_found", "no sandbox %s", r.PathValue("name"))
		return
	}
	if r.URL.Query().Get("resume") == "true" {
		f.Errorf("a read starts a VM: resume=true")
	}
	if f.o.Wakes && b.current().over() {
		f.begin(b, 5*time.Minute)
	}
	wiretest.JSON(w, http.StatusOK, f.whole(b))
}

// Errorf fails the test.
func (f *Fake) Errorf(format string, args ...any) { f.t.Errorf(format, args...) }

func (f *Fake) whole(b *box) map[string]any {
	return map[string]any{"sandbox": f.boxJSON(b), "session": f.vmJSON(b, b.current()), "routes": []any{}}
}

func (f *Fake) getSession(w http.ResponseWriter, r *http.Request) {
	b, v := f.session(r.PathValue("id"))
	if v == nil {
		refuse(w, http.StatusNotFound, "not_found", "no session %s", r.PathValue("id"))
		return
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"session": f.vmJSON(b, v), "routes": []any{}})
}

func (f *Fake) getSnapshot(w http.ResponseWriter, r *http.Request) {
	for _, b := range f.boxes {
		if b.snapshot != "" && b.snapshot == r.PathValue("id") {
			now := f.o.Now()
			wiretest.JSON(w, http.StatusOK, map[string]any{"snapshot": map[string]any{
				"id": b.snapshot, "sourceSessionId": b.current().id, "region": "iad1", "status": b.kept, "sizeBytes": 1 << 20,
				"createdAt": now.UnixMilli(), "updatedAt": now.UnixMilli(), "expiresAt": now.Add(24 * time.Hour).UnixMilli(),
			}})
			return
		}
	}
	refuse(w, http.StatusGone, "snapshot_not_found", "no snapshot %s", r.PathValue("id"))
}

func (f *Fake) delete(w http.ResponseWriter, r *http.Request) {
	b := f.named(r.PathValue("name"))
	if b == nil {
		refuse(w, http.StatusNotFound, "not_found", "no sandbox %s", r.PathValue("name"))
		return
	}
	if f.o.Orphans != 0 {
		b.forgotten = true
		refuse(w, f.o.Orphans, "internal", "the region did not answer")
		return
	}
	for _, v := range b.sessions {
		if !v.over() {
			f.finish(v, f.o.Now())
		}
	}
	f.boxes = slices.DeleteFunc(f.boxes, func(o *box) bool { return o == b })
	wiretest.JSON(w, http.StatusOK, map[string]any{"sandbox": f.boxJSON(b)})
}

func (f *Fake) stop(w http.ResponseWriter, r *http.Request) {
	b, v := f.session(r.PathValue("id"))
	switch {
	case v == nil:
		refuse(w, http.StatusNotFound, "not_found", "no session %s", r.PathValue("id"))
		return
	case v.over():
		refuse(w, http.StatusGone, "sandbox_stopped", "the sandbox is stopped")
		return
	case v.status == "stopping":
		refuse(w, http.StatusUnprocessableEntity, "sandbox_stopping", "the sandbox is stopping")
		return
	}
	if !f.o.Deaf {
		v.status, v.stopping = "stopping", f.o.Now()
		f.settle(b)
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"session": f.vmJSON(b, v), "sandbox": f.boxJSON(b)})
}

func (f *Fake) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ProjectID  string `json:"projectId"` //nolint:tagliatelle // the API's spelling
		Name       string
		Timeout    int64
		Persistent *bool
		Runtime    string
		Image      string
		Resources  struct{ VCPUs int }
		Tags, Env  map[string]string
	}
	wiretest.Decode(r, &body)
	switch {
	case body.ProjectID != Project:
		refuse(w, http.StatusNotFound, "not_found", "no such project")
		return
	case f.named(body.Name) != nil:
		refuse(w, http.StatusConflict, "conflict", "the name is taken")
		return
	case len(body.Tags) > 5:
		refuse(w, http.StatusBadRequest, "bad_request", "too many tags")
		return
	case body.Timeout < 1000:
		refuse(w, http.StatusBadRequest, "sandbox_timeout_invalid", "the timeout is too short")
		return
	}
	b := f.put(body.Name, body.Persistent == nil || *body.Persistent, body.Tags)
	b.env, b.runtime, b.image = body.Env, body.Runtime, body.Image
	if body.Resources.VCPUs > 0 {
		b.vcpus = body.Resources.VCPUs
	}
	b.current().timeout = time.Duration(body.Timeout) * time.Millisecond
	wiretest.JSON(w, http.StatusOK, f.whole(b))
}
