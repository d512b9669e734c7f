package verceltest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"sbx/internal/testkit/wiretest"
)

// maxTags is how many tags a sandbox may have (Vercel Sandbox documentation, Tags).
const maxTags = 5

func (f *Fake) routeTable() []wiretest.Route {
	scope := []string{"teamId", "slug"}
	route := func(method, path string, query []string, serve http.HandlerFunc) wiretest.Route {
		return wiretest.Route{
			Method: method, Path: path, Query: append(slices.Clone(scope), query...), Headers: []string{"Authorization"},
			Serve: f.checkCredentials(serve), Changes: method != http.MethodGet,
		}
	}
	create := []string{"projectId", "name", "timeout", "persistent", "runtime", "image", "source", "resources", "tags", "env"}
	one, two := route("POST", "/v2/sandboxes", nil, f.handleCreate), route("POST", "/v3/sandboxes", nil, f.handleCreate)
	one.Fields, two.Fields = create, create
	run := route("POST", "/v2/sandboxes/sessions/{id}/cmd", nil, f.withoutLock(f.handleRun))
	run.Fields, run.Changes = []string{"command", "args", "cwd", "env", "wait", "logs", "timeout", "sudo"}, false // it does not extend the session
	kill := route("POST", "/v2/sandboxes/sessions/{id}/cmd/{cmd}/kill", nil, f.handleKill)
	kill.Fields, kill.Changes = []string{"signal"}, false
	write := route("POST", "/v2/sandboxes/sessions/{id}/fs/write", nil, f.handleWrite)
	write.Raw, write.Changes = true, false
	update := route("PATCH", "/v2/sandboxes/{name}", []string{"projectId"}, f.handleUpdate)
	update.Fields = []string{"tags"}
	extend := route("POST", "/v2/sandboxes/sessions/{id}/extend-timeout", nil, f.handleExtend)
	extend.Fields = []string{"duration"}
	return []wiretest.Route{
		one, two, run, kill, write, update, extend,
		route("GET", "/v2/sandboxes", []string{"project", "limit", "cursor", "sortBy", "sortOrder", "status", "tags"}, f.handleList),
		route("GET", "/v2/sandboxes/{name}", []string{"projectId", "resume"}, f.handleGet),
		route("DELETE", "/v2/sandboxes/{name}", []string{"projectId"}, f.handleDelete),
		route("GET", "/v2/sandboxes/sessions/{id}", nil, f.handleGetSession),
		route("POST", "/v2/sandboxes/sessions/{id}/stop", nil, f.handleStop),
		route("GET", "/v2/sandboxes/sessions/{id}/cmd", nil, f.handleListCommands),
		route("GET", "/v2/sandboxes/sessions/{id}/cmd/{cmd}", nil, f.handleGetCommand),
		route("GET", "/v2/sandboxes/sessions/{id}/cmd/{cmd}/logs", nil, f.withoutLock(f.handleLogs)),
		route("GET", "/v2/sandboxes/snapshots/{id}", nil, f.handleGetSnapshot),
	}
}

func (f *Fake) checkCredentials(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.Header.Get("Authorization") != "Bearer "+Token:
			refuseRequest(w, http.StatusUnauthorized, "unauthorized", "bad token")
			return
		case q.Get("teamId") != Team:
			refuseRequest(w, http.StatusForbidden, "forbidden", "no such team")
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		serve(w, r)
	}
}

// withoutLock releases the lock for a route that streams.
func (f *Fake) withoutLock(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Unlock()
		defer f.mu.Lock()
		serve(w, r)
	}
}

func (f *Fake) handleList(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("project") != Project {
		refuseRequest(w, http.StatusNotFound, "not_found", "no such project")
		return
	}
	rows := slices.DeleteFunc(slices.Clone(f.boxes), func(b *box) bool { return b.forgotten })
	for _, b := range rows {
		f.passTime(b)
	}
	if status := q.Get("status"); status != "" {
		rows = slices.DeleteFunc(rows, func(b *box) bool { return b.currentSession().status != status && !f.o.Hides })
	}
	if key, value, ok := strings.Cut(q.Get("tags"), ":"); ok {
		rows = slices.DeleteFunc(rows, func(b *box) bool { return b.tags[key] != value })
	}
	if q.Get("sortOrder") != "asc" {
		slices.Reverse(rows)
	}
	rows, next := wiretest.Page(rows, q, f.o.PageSize, f.o.Loops)
	page := make([]any, 0, len(rows))
	for _, b := range rows {
		page = append(page, f.boxJSON(b))
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"sandboxes": page, "pagination": map[string]any{"count": len(page), "next": next}})
}

func (f *Fake) handleGet(w http.ResponseWriter, r *http.Request) {
	b := f.findName(r.PathValue("name"))
	if b == nil {
		refuseRequest(w, http.StatusNotFound, "not_found", "no sandbox %s", r.PathValue("name"))
		return
	}
	if r.URL.Query().Get("resume") == "true" {
		f.t.Errorf("a read starts a VM: resume=true")
	}
	if f.o.Wakes && b.currentSession().isOver() {
		f.startSession(b, 5*time.Minute)
	}
	wiretest.JSON(w, http.StatusOK, f.namedJSON(b))
}

func (f *Fake) namedJSON(b *box) map[string]any {
	return map[string]any{"sandbox": f.boxJSON(b), "session": f.vmJSON(b, b.currentSession()), "routes": []any{}}
}

func (f *Fake) handleGetSession(w http.ResponseWriter, r *http.Request) {
	b, v := f.findSession(r.PathValue("id"))
	if v == nil {
		refuseRequest(w, http.StatusNotFound, "not_found", "no session %s", r.PathValue("id"))
		return
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"session": f.vmJSON(b, v), "routes": []any{}})
}

func (f *Fake) handleGetSnapshot(w http.ResponseWriter, r *http.Request) {
	for _, b := range f.boxes {
		if b.snapshot != "" && b.snapshot == r.PathValue("id") {
			now := f.o.Now()
			wiretest.JSON(w, http.StatusOK, map[string]any{"snapshot": map[string]any{
				"id": b.snapshot, "sourceSessionId": b.currentSession().id, "region": "iad1", "status": b.kept, "sizeBytes": 1 << 20,
				"createdAt": now.UnixMilli(), "updatedAt": now.UnixMilli(), "expiresAt": now.Add(24 * time.Hour).UnixMilli(),
			}})
			return
		}
	}
	refuseRequest(w, http.StatusGone, "snapshot_not_found", "no snapshot %s", r.PathValue("id"))
}

// handleUpdate replaces all tags; what the body leaves out stays (Vercel Sandbox documentation, Tags).
func (f *Fake) handleUpdate(w http.ResponseWriter, r *http.Request) {
	var body struct{ Tags map[string]string }
	wiretest.Decode(r, &body)
	b := f.findName(r.PathValue("name"))
	switch {
	case b == nil || r.URL.Query().Get("projectId") != Project:
		refuseRequest(w, http.StatusNotFound, "not_found", "no sandbox %s", r.PathValue("name"))
		return
	case len(body.Tags) > maxTags:
		refuseRequest(w, http.StatusBadRequest, "bad_request", "too many tags")
		return
	}
	if body.Tags != nil {
		b.tags = body.Tags
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"sandbox": f.boxJSON(b)})
}

func (f *Fake) handleDelete(w http.ResponseWriter, r *http.Request) {
	b := f.findName(r.PathValue("name"))
	if b == nil {
		refuseRequest(w, http.StatusNotFound, "not_found", "no sandbox %s", r.PathValue("name"))
		return
	}
	if f.o.Orphans != 0 {
		b.forgotten = true
		refuseRequest(w, f.o.Orphans, "internal", "the region did not answer")
		return
	}
	for _, v := range b.sessions {
		if !v.isOver() {
			f.stopSession(v, f.o.Now())
		}
	}
	f.boxes = slices.DeleteFunc(f.boxes, func(o *box) bool { return o == b })
	wiretest.JSON(w, http.StatusOK, map[string]any{"sandbox": f.boxJSON(b)})
}

func (f *Fake) handleStop(w http.ResponseWriter, r *http.Request) {
	b, v := f.findSession(r.PathValue("id"))
	switch {
	case v == nil:
		refuseRequest(w, http.StatusNotFound, "not_found", "no session %s", r.PathValue("id"))
		return
	case v.isOver():
		refuseRequest(w, http.StatusGone, "sandbox_stopped", "the sandbox is stopped")
		return
	case v.status == "stopping":
		refuseRequest(w, http.StatusUnprocessableEntity, "sandbox_stopping", "the sandbox is stopping")
		return
	}
	if !f.o.Deaf {
		v.status, v.stopping = "stopping", f.o.Now()
		f.passTime(b)
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"session": f.vmJSON(b, v), "sandbox": f.boxJSON(b)})
}

// handleExtend adds to the time limit, each time that it is asked.
func (f *Fake) handleExtend(w http.ResponseWriter, r *http.Request) {
	var body struct{ Duration int64 }
	wiretest.Decode(r, &body)
	b, v := f.findSession(r.PathValue("id"))
	more := time.Duration(body.Duration) * time.Millisecond
	switch {
	case v == nil:
		refuseRequest(w, http.StatusNotFound, "not_found", "no session %s", r.PathValue("id"))
		return
	case v.isOver():
		refuseRequest(w, http.StatusGone, "sandbox_stopped", "the sandbox is stopped")
		return
	case v.status == "stopping":
		refuseRequest(w, http.StatusUnprocessableEntity, "sandbox_stopping", "the sandbox is stopping")
		return
	case more < time.Second, f.o.Longest > 0 && v.timeout+more > f.o.Longest:
		refuseRequest(w, http.StatusBadRequest, "sandbox_timeout_invalid", "the timeout must be between 1 second and %s", f.o.Longest)
		return
	case f.o.Shortens:
		v.timeout -= min(more, v.timeout/2)
	case !f.o.KeepsEnd:
		v.timeout += more
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"session": f.vmJSON(b, v)})
}

func (f *Fake) handleCreate(w http.ResponseWriter, r *http.Request) {
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
		refuseRequest(w, http.StatusNotFound, "not_found", "no such project")
		return
	case f.findName(body.Name) != nil:
		refuseRequest(w, http.StatusConflict, "conflict", "the name is taken")
		return
	case len(body.Tags) > maxTags:
		refuseRequest(w, http.StatusBadRequest, "bad_request", "too many tags")
		return
	case body.Timeout < 1000:
		refuseRequest(w, http.StatusBadRequest, "sandbox_timeout_invalid", "the timeout is too short")
		return
	}
	b := f.addName(body.Name, body.Persistent == nil || *body.Persistent, body.Tags)
	b.env, b.runtime, b.image = body.Env, body.Runtime, body.Image
	if body.Resources.VCPUs > 0 {
		b.vcpus = body.Resources.VCPUs
	}
	b.currentSession().timeout = time.Duration(body.Timeout) * time.Millisecond
	wiretest.JSON(w, http.StatusOK, f.namedJSON(b))
}
