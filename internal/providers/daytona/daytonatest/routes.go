package daytonatest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/providers/wiretest"
)

func (f *Fake) routes() []wiretest.Route {
	api := func(method, path string, query []string, serve http.HandlerFunc) wiretest.Route {
		return wiretest.Route{
			Method: method, Path: "/api" + path, Query: query, Headers: []string{"Authorization", "X-Daytona-Source"},
			Serve: f.authorized(serve), Changes: method != http.MethodGet,
		}
	}
	create := api("POST", "/sandbox", nil, f.create)
	create.Fields = []string{"name", "snapshot", "target", "labels", "env", "cpu", "memory", "disk", "ttlMinutes", "autoStopInterval", "buildInfo"}
	below := func(method, path string, fields []string, serve func(http.ResponseWriter, *http.Request, *box)) wiretest.Route {
		return wiretest.Route{Method: method, Path: "/toolbox/{id}" + path, Headers: []string{"Authorization"}, Fields: fields, Serve: f.toolbox(serve)}
	}
	return []wiretest.Route{
		create,
		api("GET", "/sandbox", []string{"cursor", "limit", "sort", "order", "id", "labels", "states", "states...", "includeErroredDeleted"}, f.list),
		api("GET", "/sandbox/{id}", nil, f.get),
		api("POST", "/sandbox/{id}/stop", nil, f.stop),
		api("DELETE", "/sandbox/{id}", nil, f.delete),
		api("GET", "/organizations/{id}/usage", nil, f.usage),
		api("GET", "/api-keys/current", nil, f.key),
		api("GET", "/audit/organizations/{id}", []string{"limit"}, f.auditLog),
		below("POST", "/process/execute", []string{"command", "cwd", "envs", "timeout"}, f.execute),
		below("GET", "/process/session/entrypoint/logs", nil, f.entrypoint),
		below("GET", "/system/metrics", nil, f.metrics),
		below("GET", "/version", nil, func(w http.ResponseWriter, _ *http.Request, _ *box) {
			wiretest.JSON(w, http.StatusOK, map[string]string{"version": "v0.205.1"})
		}),
	}
}

func (f *Fake) authorized(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+Token {
			refuse(w, r, http.StatusUnauthorized, "Invalid credentials")
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		serve(w, r)
	}
}

func (f *Fake) list(w http.ResponseWriter, r *http.Request) {
	f.settle()
	f.lists++
	q := r.URL.Query()
	rows := slices.DeleteFunc(slices.Clone(f.boxes), func(b *box) bool {
		return !f.listed(b, q.Get("includeErroredDeleted") == "true", q["states"], q.Get("id"))
	})
	var labels map[string]string
	if text := q.Get("labels"); text != "" && json.Unmarshal([]byte(text), &labels) != nil {
		refuse(w, r, http.StatusBadRequest, "labels must be a JSON object")
		return
	}
	rows = slices.DeleteFunc(rows, func(b *box) bool {
		for k, v := range labels {
			if b.labels[k] != v {
				return true
			}
		}
		return false
	})
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
	items := make([]any, 0, len(rows))
	for _, b := range rows {
		items = append(items, f.row(b))
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"items": items, "nextCursor": next})
}

// listed says whether the list shows a box: one that is destroyed not, but for
// the search index, which is behind for a moment.
func (f *Fake) listed(b *box, hidden bool, states []string, id string) bool {
	switch {
	case id != "" && !strings.HasPrefix(b.id, strings.ToLower(id)):
		return false
	case len(states) > 0 && !slices.Contains(states, b.state):
		return false
	case b.state == "destroyed":
		return f.o.Flap && f.lists%2 == 1
	}
	return hidden || !b.hidden()
}

func (f *Fake) get(w http.ResponseWriter, r *http.Request) {
	b := f.find(r.PathValue("id"))
	if b == nil {
		missing(w, r, r.PathValue("id"))
		return
	}
	if f.o.Touches && !b.destroy.IsZero() {
		b.destroy = b.destroy.Add(time.Minute)
	}
	wiretest.JSON(w, http.StatusOK, f.whole(b))
}

func (f *Fake) stop(w http.ResponseWriter, r *http.Request) {
	b := f.find(r.PathValue("id"))
	switch {
	case b == nil:
		missing(w, r, r.PathValue("id"))
		return
	case b.transitional():
		refuse(w, r, http.StatusConflict, "Sandbox state change in progress")
		return
	case b.state != "started" && b.state != "paused":
		refuse(w, r, http.StatusBadRequest, "Sandbox is not started")
		return
	}
	if !f.o.Deaf {
		b.state, b.desired, b.changed = "stopping", "stopped", f.o.Now()
		f.note("stop", b)
		f.settle()
	}
	wiretest.JSON(w, http.StatusOK, f.whole(b))
}

func (f *Fake) delete(w http.ResponseWriter, r *http.Request) {
	b := f.find(r.PathValue("id"))
	switch {
	case b == nil:
		missing(w, r, r.PathValue("id"))
		return
	case b.transitional() || b.desired == "destroyed":
		refuse(w, r, http.StatusConflict, "Sandbox state change in progress")
		return
	}
	before := f.whole(b)
	if !f.o.Deaf {
		b.desired, b.changed, b.name = "destroyed", f.o.Now(), soft(b.name)
		f.note("delete", b)
		f.settle()
	}
	before["desiredState"] = b.desired
	wiretest.JSON(w, http.StatusOK, before)
}

func (f *Fake) note(action string, b *box) {
	f.audit = append(f.audit, map[string]any{
		"id": strconv.Itoa(len(f.audit) + 1), "actorId": "u1", "actorEmail": "alice@example.com", "action": action, "targetType": "sandbox", "targetId": b.id,
		"statusCode": 200, "source": "sbx", "createdAt": f.o.Now().UTC().Format(time.RFC3339Nano),
	})
}

func (f *Fake) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Name, Snapshot    string
		Labels, Env       map[string]string
		CPU, Memory, Disk float64
		TTLMinutes        int      `json:"ttlMinutes"`       //nolint:tagliatelle // the API's spelling
		AutoStop          *float64 `json:"autoStopInterval"` //nolint:tagliatelle // as above
		BuildInfo         *struct{}
	}
	wiretest.Decode(r, &body)
	switch {
	case body.Name != "" && f.find(body.Name) != nil:
		refuse(w, r, http.StatusConflict, "Sandbox with name %s already exists", body.Name)
		return
	case body.BuildInfo == nil && body.CPU+body.Memory+body.Disk > 0:
		refuse(w, r, http.StatusBadRequest, "Cannot specify Sandbox resources when using a snapshot")
		return
	}
	b := f.put(body.Name, body.Labels)
	b.state, b.desired, b.env = "creating", "started", body.Env
	if body.AutoStop != nil {
		b.autoStop = *body.AutoStop
	}
	if body.TTLMinutes > 0 {
		b.destroy = b.created.Add(time.Duration(body.TTLMinutes) * time.Minute)
	}
	f.settle()
	wiretest.JSON(w, http.StatusOK, f.whole(b))
}

func (f *Fake) usage(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != Organization {
		refuse(w, r, http.StatusForbidden, "Forbidden resource")
		return
	}
	n := float64(len(f.boxes))
	region := map[string]any{
		"regionId": "us", "sandboxClass": "container", "totalCpuQuota": 10, "currentCpuUsage": n, "totalMemoryQuota": 20, "currentMemoryUsage": n,
		"totalDiskQuota": 30, "currentDiskUsage": 3 * n, "totalGpuQuota": 0, "currentGpuUsage": 0,
	}
	for _, k := range []string{"maxCpuPerSandbox", "maxMemoryPerSandbox", "maxDiskPerSandbox", "maxDiskPerNonEphemeralSandbox", "maxCpuPerGpu", "maxMemoryPerGpu", "maxDiskPerGpu"} {
		region[k] = nil
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"regionUsage": []any{region}, "totalSnapshotQuota": 10, "currentSnapshotUsage": 1, "totalVolumeQuota": 10, "currentVolumeUsage": 0})
}

func (f *Fake) key(w http.ResponseWriter, _ *http.Request) {
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"name": "oncall", "value": "dtn_***", "createdAt": "2026-01-01T00:00:00Z", "permissions": []string{"write:sandboxes", "delete:sandboxes"},
		"lastUsedAt": nil, "expiresAt": nil, "userId": "u1",
	})
}

func (f *Fake) auditLog(w http.ResponseWriter, r *http.Request) {
	if f.o.NoAudit {
		refuse(w, r, http.StatusForbidden, "Forbidden resource")
		return
	}
	items := f.audit
	if items == nil {
		items = []map[string]any{}
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"items": items, "total": len(items), "page": 1, "totalPages": 1})
}

// toolbox answers as the proxy before a daemon does. Every call counts as
// activity, unless its header says otherwise.
func (f *Fake) toolbox(serve func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		b := f.find(r.PathValue("id"))
		if b != nil && r.Header.Get("X-Daytona-Skip-Last-Activity-Update") != "true" {
			b.active = f.o.Now()
		}
		running := b != nil && b.state == "started"
		dead := b != nil && b.dead
		f.mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bearer "+Token:
			inside(w, r, http.StatusUnauthorized, "UNAUTHORIZED", "unauthorized")
		case b == nil:
			inside(w, r, http.StatusNotFound, "NOT_FOUND", "sandbox container not found")
		case !running:
			inside(w, r, http.StatusBadRequest, "BAD_REQUEST", "no IP address found. Is the Sandbox started?")
		case dead:
			w.WriteHeader(http.StatusBadGateway)
		default:
			serve(w, r, b)
		}
	}
}

func inside(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	wiretest.JSON(w, status, map[string]any{"statusCode": status, "message": message, "code": code, "timestamp": time.Now().UTC().Format(time.RFC3339), "path": r.URL.Path, "method": r.Method})
}

// execute pipes a command to a shell, as the daemon does; both streams come back
// as one.
func (f *Fake) execute(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Command, Cwd string
		Envs         map[string]string
		Timeout      int
	}
	wiretest.Decode(r, &body)
	if strings.TrimSpace(body.Command) == "" {
		inside(w, r, http.StatusBadRequest, "BAD_REQUEST", "command is required")
		return
	}
	f.mu.Lock()
	if b.machine == nil {
		b.machine = wiretest.NewMachine(f.t)
	}
	machine := b.machine
	p := wiretest.Process{Args: []string{"sh"}, Dir: body.Cwd, Stdin: strings.NewReader(body.Command)}
	for _, env := range []map[string]string{b.env, body.Envs} {
		for k, v := range env {
			p.Env = append(p.Env, k+"="+v)
		}
	}
	f.mu.Unlock()
	var out bytes.Buffer
	p.Stdout, p.Stderr = &out, &out
	run, err := machine.Start(p)
	if err != nil {
		code := -1
		if wiretest.Missing(err) {
			code = 127
		}
		wiretest.JSON(w, http.StatusOK, map[string]any{"exitCode": code, "result": err.Error()})
		return
	}
	limit := make(<-chan time.Time)
	if body.Timeout > 0 {
		limit = time.After(time.Duration(body.Timeout) * time.Second)
	}
	select {
	case <-run.Done():
	case <-limit:
		run.KillGroup()
		inside(w, r, http.StatusRequestTimeout, "REQUEST_TIMEOUT", "command execution timed out")
		return
	case <-r.Context().Done():
		return
	case <-f.Ended():
		return
	}
	code, signal := run.Wait()
	if signal != 0 {
		code = -1
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"exitCode": code, "result": out.String()})
}

func (f *Fake) entrypoint(w http.ResponseWriter, _ *http.Request, b *box) {
	wiretest.JSON(w, http.StatusOK, map[string]any{"output": b.out + b.err, "stdout": "entrypoint ready\nError: connect ETIMEDOUT 10.0.0.1:443\n" + b.out, "stderr": b.err})
}

func (f *Fake) metrics(w http.ResponseWriter, _ *http.Request, _ *box) {
	if f.o.Old {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	used := 12.5
	if f.o.Rests {
		used = 0
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"timestamp": f.o.Now().UTC().Format(time.RFC3339), "timestampUnix": f.o.Now().Unix(), "cpuCount": 1, "cpuUsedPct": used,
		"memUsed": int64(300 << 20), "memCache": int64(100 << 20), "memTotal": int64(1 << 30), "diskUsed": int64(1 << 30), "diskTotal": int64(3 << 30), "diskFree": int64(2 << 30),
	})
}
