package e2btest

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/providers/wiretest"
)

// control lists the routes of the control plane.
func (f *Fake) control() []wiretest.Route {
	key := []string{"X-Api-Key"}
	route := func(method, path string, query []string, serve http.HandlerFunc) wiretest.Route {
		return wiretest.Route{Method: method, Path: path, Query: query, Headers: key, Serve: f.authorized(serve), Changes: method != http.MethodGet}
	}
	list := []string{"state", "metadata", "limit", "nextToken"}
	if !f.o.Novita {
		list = append(list, "order", "startedAfter", "template")
	}
	create := route("POST", "/sandboxes", nil, f.create)
	create.Fields = []string{"templateID", "timeout", "secure", "metadata", "envVars", "autoPause"}
	routes := []wiretest.Route{
		route("GET", "/v2/sandboxes", list, f.list), create,
		route("GET", "/sandboxes", []string{"metadata"}, f.listOld),
		route("GET", "/sandboxes/{id}", nil, f.get),
		route("DELETE", "/sandboxes/{id}", nil, f.delete),
		route("GET", "/sandboxes/{id}/metrics", []string{"start", "end"}, f.metrics),
		route("GET", "/sandboxes/{id}/logs", []string{"start", "limit"}, f.logsOld),
	}
	connect := route("POST", "/sandboxes/{id}/connect", nil, f.connect)
	connect.Fields = []string{"timeout"}
	routes = append(routes, connect)
	if f.o.Novita {
		missing := func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }
		return append(routes, route("GET", "/sandboxes/quota", nil, f.quota),
			route("GET", "/v2/sandboxes/{id}/logs", []string{"cursor", "limit", "direction"}, missing),
			route("GET", "/sandboxes/events", []string{"offset", "limit", "orderAsc", "sandboxID"}, f.eventsOf))
	}
	return append(routes,
		route("GET", "/v2/sandboxes/{id}/logs", []string{"cursor", "limit", "direction", "level", "search"}, f.logs),
		route("GET", "/events/sandboxes/{id}", []string{"offset", "limit", "orderAsc"}, f.eventsOf))
}

func (f *Fake) authorized(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != Key {
			refuse(w, http.StatusUnauthorized, "Invalid API key, please visit the docs\nCannot get the team for the given API key")
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		serve(w, r)
	}
}

func (f *Fake) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	rows := f.living()
	if q.Get("order") != "asc" {
		slices.Reverse(rows)
	}
	states := strings.Split(q.Get("state"), ",")
	rows = slices.DeleteFunc(rows, func(b *box) bool { return !slices.Contains(states, b.state()) || !b.matches(q.Get("metadata")) })
	running := len(slices.DeleteFunc(slices.Clone(rows), func(b *box) bool { return b.paused }))
	w.Header().Set("X-Total-Running", strconv.Itoa(running))
	if f.o.HidesLast && len(rows) > 0 {
		rows = rows[:len(rows)-1]
	}
	if token := q.Get("nextToken"); token != "" && !f.o.Loops {
		if at := slices.IndexFunc(rows, func(b *box) bool { return b.id == token }); at >= 0 {
			rows = rows[at+1:]
		}
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	if limit = min(max(limit, 1), f.o.PageSize); len(rows) > limit {
		rows = rows[:limit]
		w.Header().Set("X-Next-Token", rows[limit-1].id)
	}
	page := make([]map[string]any, 0, len(rows))
	for _, b := range rows {
		page = append(page, b.row())
	}
	wiretest.JSON(w, http.StatusOK, page)
}

// listOld is the first API's list: running ones alone, on one page.
func (f *Fake) listOld(w http.ResponseWriter, _ *http.Request) {
	page := []map[string]any{}
	for _, b := range f.living() {
		if !b.paused {
			page = append(page, b.row())
		}
	}
	wiretest.JSON(w, http.StatusOK, page)
}

// matches reads a filter as the server does: the whole is unescaped, then each
// key and value.
func (b *box) matches(filter string) bool {
	if filter == "" {
		return true
	}
	whole, _ := url.QueryUnescape(filter)
	for pair := range strings.SplitSeq(whole, "&") {
		key, value, _ := strings.Cut(pair, "=")
		key, _ = url.QueryUnescape(key)
		value, _ = url.QueryUnescape(value)
		if b.metadata[key] != value {
			return false
		}
	}
	return true
}

func (b *box) state() string {
	if b.paused {
		return "paused"
	}
	return "running"
}

func (b *box) row() map[string]any {
	client := b.client
	if client == "" {
		client = "6532622b"
	}
	row := map[string]any{
		"templateID": b.template, "sandboxID": b.id, "clientID": client, "startedAt": b.started, "endAt": b.ends,
		"cpuCount": 2, "memoryMB": b.figures.MemoryTotalMiB, "diskSizeMB": 1024, "state": b.state(), "envdVersion": "0.4.1",
	}
	if b.metadata != nil {
		row["metadata"] = b.metadata
	}
	return row
}

func (f *Fake) get(w http.ResponseWriter, r *http.Request) {
	b := f.find(r.PathValue("id"))
	if b == nil {
		missing(w, r.PathValue("id"))
		return
	}
	row := b.row()
	row["envdAccessToken"] = b.token
	wiretest.JSON(w, http.StatusOK, row)
}

func (f *Fake) delete(w http.ResponseWriter, r *http.Request) {
	b := f.find(r.PathValue("id"))
	if b == nil {
		missing(w, r.PathValue("id"))
		return
	}
	switch {
	case f.o.Orphans != 0:
		f.orphan(w, r, b)
		return
	case !f.o.KeepsAlive:
		f.end(b, f.o.Now())
	}
	w.WriteHeader(http.StatusNoContent)
}

// orphan forgets a sandbox whose VM runs on, and answers as Options.Orphans says.
// The lock is held, and given back while nothing is answered.
func (f *Fake) orphan(w http.ResponseWriter, r *http.Request, b *box) {
	b.orphan = true
	f.end(b, f.o.Now())
	if f.o.Orphans != NoAnswer {
		refuse(w, f.o.Orphans, "Error killing sandbox: the node did not answer")
		return
	}
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-r.Context().Done():
	case <-f.Ended():
	}
	panic(http.ErrAbortHandler)
}

func (f *Fake) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		TemplateID string            `json:"templateID"` //nolint:tagliatelle // the API's spelling
		Timeout    int64             `json:"timeout"`
		Metadata   map[string]string `json:"metadata"`
		EnvVars    map[string]string `json:"envVars"` //nolint:tagliatelle // the API's spelling
	}
	wiretest.Decode(r, &body)
	switch {
	case body.TemplateID == "":
		refuse(w, http.StatusBadRequest, "validation error: templateID is missing")
		return
	case body.Timeout <= 0:
		refuse(w, http.StatusBadRequest, "Timeout must be greater than 0")
		return
	case f.o.Capacity > 0 && len(f.living()) >= f.o.Capacity:
		refuse(w, http.StatusTooManyRequests, "you have reached the maximum number of concurrent E2B sandboxes (%d)", f.o.Capacity)
		return
	}
	now := f.o.Now()
	b := f.put(body.TemplateID, body.Metadata, now, now.Add(time.Duration(body.Timeout)*time.Second))
	b.env = body.EnvVars
	wiretest.JSON(w, http.StatusCreated, map[string]any{
		"templateID": b.template, "sandboxID": b.id, "clientID": b.row()["clientID"], "envdVersion": "0.4.1", "envdAccessToken": b.token,
	})
}

// connect resumes and lengthens: no read path may come here.
func (f *Fake) connect(w http.ResponseWriter, r *http.Request) {
	b := f.find(r.PathValue("id"))
	if b == nil {
		missing(w, r.PathValue("id"))
		return
	}
	b.paused = false
	wiretest.JSON(w, http.StatusCreated, map[string]any{"templateID": b.template, "sandboxID": b.id, "clientID": b.client, "envdVersion": "0.4.1"})
}

func (f *Fake) quota(w http.ResponseWriter, _ *http.Request) {
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"limit": map[string]any{"concurrentInstances": cmp.Or(f.o.Capacity, 100), "concurrentVcpu": 200, "concurrentRamMb": 102400, "maxLengthHours": 3},
		"usage": map[string]any{"concurrentInstances": len(f.living()), "concurrentVcpu": 2 * len(f.living()), "concurrentRamMb": 512 * len(f.living())},
	})
}

func (f *Fake) eventsOf(w http.ResponseWriter, r *http.Request) {
	rows := []any{}
	if b := f.known(cmp.Or(r.PathValue("id"), r.URL.Query().Get("sandboxID"))); b != nil {
		for i, e := range b.events {
			rows = append(rows, map[string]any{
				"version": "v1", "id": b.id + "-" + strconv.Itoa(i), "type": "sandbox.lifecycle." + e.kind, "timestamp": e.at, "sandboxId": b.id, "eventData": map[string]any{},
			})
		}
	}
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	wiretest.JSON(w, http.StatusOK, rows[min(offset, len(rows)):])
}

// logs answers an unknown id with an empty list, as the API does.
func (f *Fake) logs(w http.ResponseWriter, r *http.Request) {
	cursor, _ := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	rows := []any{}
	if b := f.known(r.PathValue("id")); b != nil {
		for _, l := range b.logs {
			if l.at.UnixMilli() >= cursor {
				rows = append(rows, map[string]any{"timestamp": l.at, "level": "info", "message": l.message, "fields": map[string]string{"logger": "process"}})
			}
		}
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"logs": rows})
}

func (f *Fake) logsOld(w http.ResponseWriter, r *http.Request) {
	rows := []any{}
	if b := f.known(r.PathValue("id")); b != nil {
		for _, l := range b.logs {
			rows = append(rows, map[string]any{"timestamp": l.at, "line": `{"logger":"process","message":` + strconv.Quote(l.message) + `}`})
		}
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"logs": rows, "logEntries": []any{}})
}
