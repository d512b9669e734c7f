package e2btest

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/testkit/wiretest"
)

func (f *Fake) controlRoutes() []wiretest.Route {
	key := []string{"X-Api-Key"}
	route := func(method, path string, query []string, serve http.HandlerFunc) wiretest.Route {
		return wiretest.Route{Method: method, Path: path, Query: query, Headers: key, Serve: f.checkKey(serve), Changes: method != http.MethodGet}
	}
	list := []string{"state", "metadata", "limit", "nextToken"}
	if !f.o.Novita {
		list = append(list, "order", "startedAfter", "template")
	}
	create := route("POST", "/sandboxes", nil, f.handleCreate)
	create.Fields = []string{"templateID", "timeout", "secure", "metadata", "envVars", "autoPause"}
	routes := []wiretest.Route{
		route("GET", "/v2/sandboxes", list, f.handleList), create,
		route("GET", "/sandboxes", []string{"metadata"}, f.handleOldList),
		route("GET", "/sandboxes/{id}", nil, f.handleGet),
		route("DELETE", "/sandboxes/{id}", nil, f.handleDelete),
		route("GET", "/sandboxes/{id}/metrics", []string{"start", "end"}, f.handleMetrics),
		route("GET", "/sandboxes/{id}/logs", []string{"start", "limit"}, f.handleOldLogs),
	}
	connect := route("POST", "/sandboxes/{id}/connect", nil, f.handleConnect)
	connect.Fields = []string{"timeout"}
	limit := route("POST", "/sandboxes/{id}/timeout", nil, f.handleTimeout)
	limit.Fields = []string{"timeout"}
	routes = append(routes, connect, limit)
	if f.o.Novita {
		missing := func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }
		return append(routes, route("GET", "/sandboxes/quota", nil, f.handleQuota),
			route("GET", "/sandboxes/metrics", []string{"sandbox_ids"}, missing),
			route("GET", "/v2/sandboxes/{id}/logs", []string{"cursor", "limit", "direction"}, missing),
			route("GET", "/sandboxes/events", []string{"offset", "limit", "orderAsc", "sandboxID"}, f.handleEvents))
	}
	return append(routes, route("GET", "/sandboxes/metrics", []string{"sandbox_ids"}, f.handleManyMetrics),
		route("GET", "/v2/sandboxes/{id}/logs", []string{"cursor", "limit", "direction", "level", "search"}, f.handleLogs),
		route("GET", "/events/sandboxes/{id}", []string{"offset", "limit", "orderAsc"}, f.handleEvents))
}

func (f *Fake) checkKey(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != Key {
			refuseCall(w, http.StatusUnauthorized, "Invalid API key, please visit the docs\nCannot get the team for the given API key")
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		serve(w, r)
	}
}

func (f *Fake) handleList(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	rows := f.livingBoxes()
	if q.Get("order") != "asc" {
		slices.Reverse(rows)
	}
	states := strings.Split(q.Get("state"), ",")
	rows = slices.DeleteFunc(rows, func(b *box) bool {
		return !slices.Contains(states, b.stateName()) || !b.matchesFilter(q.Get("metadata"))
	})
	running := len(slices.DeleteFunc(slices.Clone(rows), func(b *box) bool { return b.paused }))
	if slices.Contains(states, "running") { // the API counts only what is asked for
		w.Header().Set("X-Total-Running", strconv.Itoa(running))
	}
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
		page = append(page, b.toRow())
	}
	wiretest.JSON(w, http.StatusOK, page)
}

// handleOldList is the first API's list: running sandboxes on one page.
func (f *Fake) handleOldList(w http.ResponseWriter, _ *http.Request) {
	page := []map[string]any{}
	for _, b := range f.livingBoxes() {
		if !b.paused {
			page = append(page, b.toRow())
		}
	}
	wiretest.JSON(w, http.StatusOK, page)
}

// matchesFilter decodes a filter as the server does: the whole is unescaped, then each key and
// value.
func (b *box) matchesFilter(filter string) bool {
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

func (b *box) stateName() string {
	if b.paused {
		return "paused"
	}
	return "running"
}

func (b *box) toRow() map[string]any {
	client := b.client
	if client == "" {
		client = "6532622b"
	}
	row := map[string]any{
		"templateID": b.template, "sandboxID": b.id, "clientID": client, "startedAt": b.started, "endAt": b.ends,
		"cpuCount": 2, "memoryMB": b.figures.MemoryTotalMiB, "diskSizeMB": 1024, "state": b.stateName(), "envdVersion": "0.4.1",
	}
	if b.metadata != nil {
		row["metadata"] = b.metadata
	}
	return row
}

func (f *Fake) handleGet(w http.ResponseWriter, r *http.Request) {
	b := f.findLiving(r.PathValue("id"))
	if b == nil {
		refuseUnknown(w, r.PathValue("id"))
		return
	}
	row := b.toRow()
	row["envdAccessToken"] = b.token
	wiretest.JSON(w, http.StatusOK, row)
}

func (f *Fake) handleDelete(w http.ResponseWriter, r *http.Request) {
	b := f.findLiving(r.PathValue("id"))
	if b == nil {
		refuseUnknown(w, r.PathValue("id"))
		return
	}
	switch {
	case f.o.Orphans != 0:
		f.orphanBox(w, r, b)
		return
	case !f.o.KeepsAlive:
		f.endBox(b, f.o.Now())
	}
	w.WriteHeader(http.StatusNoContent)
}

// orphanBox drops the record of a sandbox whose VM still runs, and answers Options.Orphans. The lock is
// held, and released while there is no answer.
func (f *Fake) orphanBox(w http.ResponseWriter, r *http.Request, b *box) {
	b.orphan = true
	f.endBox(b, f.o.Now())
	if f.o.Orphans != NoAnswer {
		refuseCall(w, f.o.Orphans, "Error killing sandbox: the node did not answer")
		return
	}
	f.mu.Unlock()
	defer f.mu.Lock()
	f.WaitForEnd(r)
	panic(http.ErrAbortHandler)
}

func (f *Fake) handleCreate(w http.ResponseWriter, r *http.Request) {
	var body struct {
		TemplateID string            `json:"templateID"` //nolint:tagliatelle // the API's spelling
		Timeout    int64             `json:"timeout"`
		Metadata   map[string]string `json:"metadata"`
		EnvVars    map[string]string `json:"envVars"` //nolint:tagliatelle // the API's spelling
	}
	wiretest.Decode(r, &body)
	switch {
	case body.TemplateID == "":
		refuseCall(w, http.StatusBadRequest, "validation error: templateID is missing")
		return
	case body.Timeout <= 0:
		refuseCall(w, http.StatusBadRequest, "Timeout must be greater than 0")
		return
	case f.o.Capacity > 0 && len(f.livingBoxes()) >= f.o.Capacity:
		refuseCall(w, http.StatusTooManyRequests, "you have reached the maximum number of concurrent E2B sandboxes (%d)", f.o.Capacity)
		return
	}
	now := f.o.Now()
	b := f.newBox(body.TemplateID, body.Metadata, now, now.Add(time.Duration(body.Timeout)*time.Second))
	b.env = body.EnvVars
	wiretest.JSON(w, http.StatusCreated, map[string]any{
		"templateID": b.template, "sandboxID": b.id, "clientID": b.toRow()["clientID"], "envdVersion": "0.4.1", "envdAccessToken": b.token,
	})
}

// handleConnect resumes and extends a sandbox; no read may call it.
func (f *Fake) handleConnect(w http.ResponseWriter, r *http.Request) {
	b := f.findLiving(r.PathValue("id"))
	if b == nil {
		refuseUnknown(w, r.PathValue("id"))
		return
	}
	b.paused = false
	wiretest.JSON(w, http.StatusCreated, map[string]any{"templateID": b.template, "sandboxID": b.id, "clientID": b.client, "envdVersion": "0.4.1"})
}

// handleTimeout sets the time limit from now on, also where it is shorter than before (E2B API).
func (f *Fake) handleTimeout(w http.ResponseWriter, r *http.Request) {
	var body struct{ Timeout int64 }
	wiretest.Decode(r, &body)
	now := f.o.Now()
	switch b := f.findLiving(r.PathValue("id")); {
	case b == nil:
		refuseUnknown(w, r.PathValue("id"))
		return
	case body.Timeout <= 0:
		refuseCall(w, http.StatusBadRequest, "validation error: timeout must be greater than 0")
		return
	case f.o.MaxHours > 0 && body.Timeout > int64(f.o.MaxHours)*3600:
		refuseCall(w, http.StatusBadRequest, "Timeout cannot be greater than %d hours", f.o.MaxHours)
		return
	case b.paused:
		refuseCall(w, http.StatusConflict, "Sandbox %q is not running", b.id)
		return
	case f.o.Shortens:
		b.ends = now.Add(b.ends.Sub(now) / 2)
	case !f.o.KeepsEnd:
		b.ends = now.Add(time.Duration(body.Timeout) * time.Second)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (f *Fake) handleQuota(w http.ResponseWriter, _ *http.Request) {
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"limit": map[string]any{"concurrentInstances": cmp.Or(f.o.Capacity, 100), "concurrentVcpu": 200, "concurrentRamMb": 102400, "maxLengthHours": 3},
		"usage": map[string]any{"concurrentInstances": len(f.livingBoxes()), "concurrentVcpu": 2 * len(f.livingBoxes()), "concurrentRamMb": 512 * len(f.livingBoxes())},
	})
}

func (f *Fake) handleEvents(w http.ResponseWriter, r *http.Request) {
	rows := []any{}
	if b := f.findAny(cmp.Or(r.PathValue("id"), r.URL.Query().Get("sandboxID"))); b != nil {
		for i, e := range b.events {
			rows = append(rows, map[string]any{
				"version": "v1", "id": b.id + "-" + strconv.Itoa(i), "type": "sandbox.lifecycle." + e.kind, "timestamp": e.at, "sandboxId": b.id, "eventData": map[string]any{},
			})
		}
	}
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	wiretest.JSON(w, http.StatusOK, firstOf(rows[min(offset, len(rows)):], r))
}

// handleLogs answers an empty list for an unknown id, as the API does.
func (f *Fake) handleLogs(w http.ResponseWriter, r *http.Request) {
	cursor, _ := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	rows := []any{}
	if b := f.findAny(r.PathValue("id")); b != nil {
		for _, l := range b.logs {
			if l.at.UnixMilli() >= cursor {
				rows = append(rows, map[string]any{"timestamp": l.at, "level": "info", "message": l.message, "fields": l.fields})
			}
		}
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"logs": firstOf(rows, r)})
}

func (f *Fake) handleOldLogs(w http.ResponseWriter, r *http.Request) {
	rows := []any{}
	if b := f.findAny(r.PathValue("id")); b != nil {
		for _, l := range b.logs {
			line := maps.Clone(l.fields)
			line["message"] = l.message
			text, _ := json.Marshal(line) // of texts alone
			rows = append(rows, map[string]any{"timestamp": l.at, "line": string(text)})
		}
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"logs": firstOf(rows, r), "logEntries": []any{}})
}

// firstOf are as many rows as the query asks for.
func firstOf[R any](rows []R, r *http.Request) []R {
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil && limit >= 0 {
		return rows[:min(limit, len(rows))]
	}
	return rows
}
