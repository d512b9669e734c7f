package daytonatest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/testkit/wiretest"
)

func (f *Fake) allRoutes() []wiretest.Route {
	api := func(method, path string, query []string, serve http.HandlerFunc) wiretest.Route {
		return wiretest.Route{
			Method: method, Path: "/api" + path, Query: query, Headers: []string{"Authorization", "X-Daytona-Source"},
			Serve: f.requireToken(serve), Changes: method != http.MethodGet,
		}
	}
	create := api("POST", "/sandbox", nil, f.serveCreate)
	create.Fields = []string{"name", "snapshot", "target", "labels", "env", "cpu", "memory", "disk", "ttlMinutes", "autoStopInterval", "buildInfo"}
	labels := api("PUT", "/sandbox/{id}/labels", nil, f.serveLabels)
	labels.Fields = []string{"labels"}
	below := func(method, path string, fields []string, serve func(http.ResponseWriter, *http.Request, *box)) wiretest.Route {
		return wiretest.Route{Method: method, Path: "/toolbox/{id}" + path, Headers: []string{"Authorization"}, Fields: fields, Serve: f.proxyToolbox(serve)}
	}
	return []wiretest.Route{
		create, labels,
		api("GET", "/sandbox", []string{"cursor", "limit", "sort", "order", "id", "labels", "states", "states...", "includeErroredDeleted"}, f.serveList),
		api("GET", "/sandbox/{id}", nil, f.serveGet),
		api("POST", "/sandbox/{id}/stop", nil, f.serveStop),
		api("POST", "/sandbox/{id}/ttl/{minutes}", nil, f.serveTTL),
		api("POST", "/sandbox/{id}/autostop/{minutes}", nil, f.serveAutoStop),
		api("DELETE", "/sandbox/{id}", nil, f.serveDelete),
		api("GET", "/organizations/{id}/usage", nil, f.serveUsage),
		api("GET", "/api-keys/current", nil, f.serveKey),
		api("GET", "/audit/organizations/{id}", []string{"limit", "page"}, f.serveAuditLog),
		below("POST", "/process/execute", []string{"command", "cwd", "envs", "timeout"}, f.serveExecute),
		below("GET", "/process/session/entrypoint/logs", nil, f.serveEntrypoint),
		below("GET", "/system/metrics", nil, f.serveMetrics),
		below("GET", "/version", nil, func(w http.ResponseWriter, _ *http.Request, _ *box) {
			wiretest.JSON(w, http.StatusOK, map[string]string{"version": "v0.205.1"})
		}),
	}
}

func (f *Fake) requireToken(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+Token {
			writeAPIError(w, r, http.StatusUnauthorized, "Invalid credentials")
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		serve(w, r)
	}
}

func (f *Fake) serveList(w http.ResponseWriter, r *http.Request) {
	f.advanceTime()
	f.lists++
	q := r.URL.Query()
	rows := slices.DeleteFunc(slices.Clone(f.boxes), func(b *box) bool {
		return !f.isListed(b, q.Get("includeErroredDeleted") == "true", q["states"], q.Get("id"))
	})
	var labels map[string]string
	if text := q.Get("labels"); text != "" && json.Unmarshal([]byte(text), &labels) != nil {
		writeAPIError(w, r, http.StatusBadRequest, "labels must be a JSON object")
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
	rows, next := wiretest.Page(rows, q, f.o.PageSize, f.o.Loops)
	items := make([]any, 0, len(rows))
	for _, b := range rows {
		items = append(items, f.listRow(b))
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"items": items, "nextCursor": next})
}

// isListed says whether the list shows a box. The search index may show a destroyed one for a
// moment.
func (f *Fake) isListed(b *box, hidden bool, states []string, id string) bool {
	switch {
	case id != "" && !strings.HasPrefix(b.id, strings.ToLower(id)):
		return false
	case len(states) > 0 && !slices.Contains(states, b.state):
		return false
	case b.state == "destroyed":
		return f.o.Flap && f.lists%2 == 1
	}
	return hidden || !b.isHidden()
}

func (f *Fake) serveGet(w http.ResponseWriter, r *http.Request) {
	b := f.findBox(r.PathValue("id"))
	if b == nil {
		writeNotFound(w, r, r.PathValue("id"))
		return
	}
	if f.o.Touches && !b.destroy.IsZero() {
		b.destroy = b.destroy.Add(time.Minute)
	}
	wiretest.JSON(w, http.StatusOK, f.detailRow(b))
}

func (f *Fake) serveStop(w http.ResponseWriter, r *http.Request) {
	b := f.findBox(r.PathValue("id"))
	switch {
	case b == nil:
		writeNotFound(w, r, r.PathValue("id"))
		return
	case b.isChanging():
		writeAPIError(w, r, http.StatusConflict, "Sandbox state change in progress")
		return
	case b.state != "started" && b.state != "paused":
		writeAPIError(w, r, http.StatusBadRequest, "Sandbox is not started")
		return
	}
	if !f.o.Deaf {
		b.state, b.desired, b.changed = "stopping", "stopped", f.o.Now()
		f.recordAudit("stop", b)
		f.advanceTime()
	}
	wiretest.JSON(w, http.StatusOK, f.detailRow(b))
}

// serveLabels replaces all labels (replaceLabels of the description).
func (f *Fake) serveLabels(w http.ResponseWriter, r *http.Request) {
	var body struct{ Labels map[string]string }
	wiretest.Decode(r, &body)
	b := f.findBox(r.PathValue("id"))
	switch {
	case b == nil:
		writeNotFound(w, r, r.PathValue("id"))
		return
	case body.Labels == nil:
		writeAPIError(w, r, http.StatusBadRequest, "labels should not be null or undefined")
		return
	}
	b.labels = body.Labels
	wiretest.JSON(w, http.StatusOK, map[string]any{"labels": b.labels})
}

func (f *Fake) serveDelete(w http.ResponseWriter, r *http.Request) {
	b := f.findBox(r.PathValue("id"))
	switch {
	case b == nil:
		writeNotFound(w, r, r.PathValue("id"))
		return
	case b.isChanging() || b.desired == "destroyed":
		writeAPIError(w, r, http.StatusConflict, "Sandbox state change in progress")
		return
	}
	before := f.detailRow(b)
	if !f.o.Deaf {
		b.desired, b.changed, b.name = "destroyed", f.o.Now(), "DELETED_"+strings.TrimPrefix(b.name, "DELETED_")
		f.recordAudit("delete", b)
		f.advanceTime()
	}
	before["desiredState"] = b.desired
	wiretest.JSON(w, http.StatusOK, before)
}

// AddAudit adds entries about other objects of the organization to its audit log.
func (f *Fake) AddAudit(entries int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range entries {
		f.recordAudit("start", &box{id: "another"})
	}
}

func (f *Fake) recordAudit(action string, b *box) {
	f.audit = append(f.audit, map[string]any{
		"id": strconv.Itoa(len(f.audit) + 1), "actorId": "u1", "actorEmail": "alice@example.com", "action": action, "targetType": "sandbox", "targetId": b.id,
		"statusCode": 200, "source": "sbx", "createdAt": f.o.Now().UTC().Format(time.RFC3339Nano),
	})
}

func (f *Fake) serveCreate(w http.ResponseWriter, r *http.Request) {
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
	case body.Name != "" && f.findBox(body.Name) != nil:
		writeAPIError(w, r, http.StatusConflict, "Sandbox with name %s already exists", body.Name)
		return
	case body.BuildInfo == nil && body.CPU+body.Memory+body.Disk > 0:
		writeAPIError(w, r, http.StatusBadRequest, "Cannot specify Sandbox resources when using a snapshot")
		return
	}
	b := f.addBox(body.Name, body.Labels)
	b.state, b.desired, b.env = "creating", "started", body.Env
	if body.AutoStop != nil {
		b.autoStop = *body.AutoStop
	}
	if body.TTLMinutes > 0 {
		b.destroy = b.created.Add(time.Duration(body.TTLMinutes) * time.Minute)
	}
	f.advanceTime()
	wiretest.JSON(w, http.StatusOK, f.detailRow(b))
}

func (f *Fake) serveUsage(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != Organization {
		writeAPIError(w, r, http.StatusForbidden, "Forbidden resource")
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

func (f *Fake) serveKey(w http.ResponseWriter, _ *http.Request) {
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"name": "oncall", "value": "dtn_***", "createdAt": "2026-01-01T00:00:00Z", "permissions": []string{"write:sandboxes", "delete:sandboxes"},
		"lastUsedAt": nil, "expiresAt": nil, "userId": "u1",
	})
}

func (f *Fake) serveAuditLog(w http.ResponseWriter, r *http.Request) {
	if f.o.NoAudit {
		writeAPIError(w, r, http.StatusForbidden, "Forbidden resource")
		return
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	limit, page = min(max(limit, 1), 200), max(page, 1)
	items := slices.Clone(f.audit)
	slices.Reverse(items) // the newest first
	total := len(items)
	items = items[min((page-1)*limit, total):min(page*limit, total)]
	if items == nil {
		items = []map[string]any{}
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"items": items, "total": total, "page": page, "totalPages": (total + limit - 1) / limit})
}

// proxyToolbox answers as the proxy in front of a daemon. Every call counts as activity unless its
// header prevents that.
func (f *Fake) proxyToolbox(serve func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		b := f.findBox(r.PathValue("id"))
		if b != nil && r.Header.Get("X-Daytona-Skip-Last-Activity-Update") != "true" {
			b.active = f.o.Now()
		}
		running := b != nil && b.state == "started"
		dead := b != nil && b.dead
		f.mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bearer "+Token:
			writeToolboxError(w, r, http.StatusUnauthorized, "UNAUTHORIZED", "unauthorized")
		case b == nil:
			writeToolboxError(w, r, http.StatusNotFound, "NOT_FOUND", "sandbox container not found")
		case !running:
			writeToolboxError(w, r, http.StatusBadRequest, "BAD_REQUEST", "no IP address found. Is the Sandbox started?")
		case dead:
			w.WriteHeader(http.StatusBadGateway)
		default:
			serve(w, r, b)
		}
	}
}

func writeToolboxError(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	wiretest.JSON(w, status, map[string]any{"statusCode": status, "message": message, "code": code, "timestamp": time.Now().UTC().Format(time.RFC3339), "path": r.URL.Path, "method": r.Method})
}

// serveExecute pipes a command to the first shell that the image has, as the daemon does. Both streams are answered as one.
func (f *Fake) serveExecute(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct {
		Command, Cwd string
		Envs         map[string]string
		Timeout      int
	}
	wiretest.Decode(r, &body)
	if strings.TrimSpace(body.Command) == "" {
		writeToolboxError(w, r, http.StatusBadRequest, "BAD_REQUEST", "command is required")
		return
	}
	f.mu.Lock()
	if b.machine == nil {
		b.machine = wiretest.NewMachine(f.t, f.o.Shell)
	}
	machine := b.machine
	p := wiretest.PipedShell(cmp.Or(f.o.Shell, wiretest.DefaultShell()))
	p.Dir, p.Stdin = body.Cwd, strings.NewReader(body.Command)
	p.AddEnv(b.env, body.Envs)
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
		writeToolboxError(w, r, http.StatusRequestTimeout, "REQUEST_TIMEOUT", "command execution timed out")
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

func (f *Fake) serveEntrypoint(w http.ResponseWriter, _ *http.Request, b *box) {
	wiretest.JSON(w, http.StatusOK, map[string]any{"output": b.out + b.err, "stdout": "entrypoint ready\nError: connect ETIMEDOUT 10.0.0.1:443\n" + b.out, "stderr": b.err})
}

func (f *Fake) serveMetrics(w http.ResponseWriter, _ *http.Request, _ *box) {
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
