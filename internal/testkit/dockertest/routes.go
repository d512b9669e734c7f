package dockertest

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/testkit/wiretest"
)

// The newest version that clients of this fake speak is part of each path.
func (f *Fake) allRoutes() []wiretest.Route {
	route := func(method, path string, query, fields []string, serve http.HandlerFunc) wiretest.Route {
		return wiretest.Route{Method: method, Path: "/v" + f.o.API + path, Query: query, Fields: fields, Serve: f.answer(serve), Changes: method != http.MethodGet && !strings.Contains(path, "exec")}
	}
	create := []string{"Image", "Entrypoint", "Cmd", "Env", "Labels", "HostConfig"}
	execFields := []string{"AttachStdin", "AttachStdout", "AttachStderr", "Tty", "Cmd", "Env", "WorkingDir"}
	return []wiretest.Route{
		{Method: "GET", Path: "/_ping", Serve: f.answer(f.servePing)},
		{Method: "GET", Path: "/v4.3.1/libpod/info", Serve: f.answer(f.serveLibpod)},
		route("GET", "/version", nil, nil, f.serveVersion),
		route("GET", "/info", nil, nil, f.serveInfo),
		route("GET", "/events", []string{"since", "until", "filters"}, nil, f.serveEvents),
		route("POST", "/images/create", []string{"fromImage", "tag"}, nil, f.servePull),
		route("GET", "/images/{id}/json", nil, nil, f.serveImage),
		route("GET", "/containers/json", []string{"all", "filters"}, nil, f.serveList),
		route("POST", "/containers/create", []string{"name"}, create, f.serveCreate),
		route("GET", "/containers/{id}/json", nil, nil, f.onBox(f.serveInspect)),
		route("POST", "/containers/{id}/start", nil, nil, f.onBox(f.serveStart)),
		route("POST", "/containers/{id}/stop", []string{"t"}, nil, f.onBox(f.serveStop)),
		route("POST", "/containers/{id}/unpause", nil, nil, f.onBox(f.serveUnpause)),
		route("POST", "/containers/{id}/update", nil, []string{"RestartPolicy"}, f.onBox(f.serveUpdate)),
		route("DELETE", "/containers/{id}", []string{"force", "v"}, nil, f.onBox(f.serveDelete)),
		route("GET", "/containers/{id}/stats", []string{"stream", "one-shot"}, nil, f.onBox(f.serveStats)),
		route("GET", "/containers/{id}/logs", []string{"stdout", "stderr", "timestamps", "tail", "since", "until", "follow"}, nil, f.onBox(f.serveLogs)),
		route("POST", "/containers/{id}/exec", nil, execFields, f.onBox(f.serveNewExec)),
		route("POST", "/exec/{id}/start", nil, []string{"Detach", "Tty"}, f.serveExecStart),
		route("POST", "/exec/{id}/resize", []string{"h", "w"}, nil, f.serveResize),
		route("GET", "/exec/{id}/json", nil, nil, f.serveExec),
	}
}

// answer sets the headers of every answer. A path of another version is unknown to this fake, as it is refused
// by an engine.
func (f *Fake) answer(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		w.Header().Set("Api-Version", f.o.API)
		w.Header().Set("Server", "Docker/26.1.5 (linux)")
		if f.o.Podman {
			w.Header().Set("Server", "Libpod/4.3.1 (linux)")
			w.Header().Set("Libpod-Api-Version", "4.3.1")
		}
		serve(w, r)
	}
}

func (f *Fake) onBox(serve func(http.ResponseWriter, *http.Request, *box)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b := f.find(r.PathValue("id"))
		if b == nil {
			refuse(w, http.StatusNotFound, "No such container: %s", r.PathValue("id"))
			return
		}
		serve(w, r, b)
	}
}

func (f *Fake) servePing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("OK"))
}

func (f *Fake) serveVersion(w http.ResponseWriter, _ *http.Request) {
	name := "Engine"
	if f.o.Podman {
		name = "Podman Engine"
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"Version": "26.1.5", "ApiVersion": f.o.API, "MinAPIVersion": f.o.MinAPI, "Os": "linux", "Arch": "amd64", "Components": []any{map[string]any{"Name": name, "Version": "26.1.5"}}})
}

// serveLibpod is what Podman says of itself.
func (f *Fake) serveLibpod(w http.ResponseWriter, _ *http.Request) {
	if !f.o.Podman {
		http.NotFound(w, nil)
		return
	}
	groups := []string{"cpu", "io", "memory", "pids"}
	if f.o.NoGroups {
		groups = nil
	}
	wiretest.JSON(w, http.StatusOK, map[string]any{"host": map[string]any{"cgroupControllers": groups, "cgroupVersion": "v2", "security": map[string]any{"rootless": f.o.NoGroups}}})
}

func (f *Fake) serveInfo(w http.ResponseWriter, _ *http.Request) {
	running := 0
	for _, b := range f.boxes {
		if b.state == "running" {
			running++
		}
	}
	info := map[string]any{"ID": "7TRN:IPZB:QYBB:VPBQ", "Containers": len(f.boxes), "ContainersRunning": running, "NCPU": 4, "MemTotal": 16 << 30, "Driver": "overlay2", "CgroupVersion": "2", "OperatingSystem": "Debian"}
	if f.o.NoLimits {
		info["Warnings"] = []string{"WARNING: No memory limit support", "WARNING: bridge-nf-call-iptables is disabled"}
	}
	wiretest.JSON(w, http.StatusOK, info)
}

// filter reads the query `filters`: names to values.
func filter(r *http.Request) map[string][]string {
	var all map[string][]string
	if text := r.URL.Query().Get("filters"); text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			panic(err)
		}
	}
	return all
}

func hasLabels(b *box, words []string) bool {
	for _, word := range words {
		key, value, exact := strings.Cut(word, "=")
		if got, ok := b.labels[key]; !ok || exact && got != value {
			return false
		}
	}
	return true
}

// serveList shows what runs, and with all=1 the rest.
func (f *Fake) serveList(w http.ResponseWriter, r *http.Request) {
	asked := filter(r)
	rows := []any{}
	for _, b := range f.boxes {
		if !b.runs() && r.URL.Query().Get("all") != "1" || !hasLabels(b, asked["label"]) || len(asked["id"]) > 0 && !slices.Contains(asked["id"], b.id) {
			continue
		}
		state, status := b.state, "Up 5 minutes"
		switch {
		case f.o.Ended:
			state = "running"
		case b.state == f.exitedWord():
			status = fmt.Sprintf("Exited (%d) 5 seconds ago", b.code)
		case b.state == "restarting":
			status = fmt.Sprintf("Restarting (%d) 5 seconds ago", b.code)
		case b.health != "":
			status += " (" + b.health + ")"
		}
		names := []string{"/" + b.name}
		if b.alias != "" { // their order is not defined
			names = []string{"/" + b.alias, "/" + b.name}
		}
		rows = append(rows, map[string]any{
			"Id": b.id, "Names": names, "Image": b.image, "ImageID": imageID(b.image), "Command": strings.Join(b.entrypoint, " "),
			"Created": b.created.Unix(), "Ports": []any{}, "Labels": b.labels, "State": state, "Status": status, "HostConfig": map[string]any{"NetworkMode": "none"}, "Mounts": []any{},
		})
	}
	wiretest.JSON(w, http.StatusOK, rows)
}

// jsonArray is an array in JSON, also an empty one.
func jsonArray(words []string) []string { return append([]string{}, words...) }

const neverStarted = "0001-01-01T00:00:00Z"

func stamp(at time.Time) string {
	if at.IsZero() {
		return neverStarted
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func (f *Fake) serveInspect(w http.ResponseWriter, _ *http.Request, b *box) {
	host := map[string]any{"Memory": 0, "NanoCpus": 0, "PidsLimit": nil, "Runtime": "runc", "AutoRemove": b.remove, "NetworkMode": "none", "RestartPolicy": map[string]any{"Name": b.restart, "MaximumRetryCount": 0}}
	maps.Copy(host, b.host)
	runs := b.runs() || f.o.Ended
	path, args := "", []string{}
	if all := append(slices.Clone(b.entrypoint), b.cmd...); len(all) > 0 {
		path, args = all[0], all[1:]
	}
	state := map[string]any{
		"Status": b.state, "Running": runs, "Paused": b.state == "paused", "Restarting": b.state == "restarting", "OOMKilled": b.oom && !f.o.Podman, "Dead": b.state == "dead", "Pid": 0,
		"ExitCode": b.code, "Error": b.failed, "StartedAt": stamp(b.started), "FinishedAt": stamp(b.finished),
	}
	if f.o.Ended {
		state["Status"] = "running"
	}
	if b.health != "" {
		state["Health"] = map[string]any{"Status": b.health, "FailingStreak": 3, "Log": []any{map[string]any{"Start": stamp(b.started), "End": stamp(b.started), "ExitCode": 1, "Output": "connection refused\n"}}}
	}
	if b.main != nil && runs {
		state["Pid"] = b.main.PID
	}
	execs := append([]string(nil), b.execs...) // those that have ended stay for minutes
	wiretest.JSON(w, http.StatusOK, map[string]any{
		"Id": b.id, "Created": stamp(b.created), "Path": path, "Args": args, "Name": "/" + b.name, "RestartCount": b.restarts, "Image": imageID(b.image), "ExecIDs": execs, "State": state,
		"Config": map[string]any{"Image": b.image, "Tty": b.tty, "Labels": b.labels, "Env": jsonArray(b.env), "Cmd": jsonArray(b.cmd), "Entrypoint": jsonArray(b.entrypoint), "Hostname": b.id[:12], "Healthcheck": map[string]any{"Test": jsonArray(b.check)}}, "HostConfig": host,
	})
}

// imageID is the id of an image by its name.
func imageID(name string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name))) }

func (f *Fake) serveImage(w http.ResponseWriter, r *http.Request) {
	for _, name := range append([]string{Image}, f.pulled...) {
		if imageID(name) == r.PathValue("id") {
			wiretest.JSON(w, http.StatusOK, map[string]any{"Id": imageID(name), "RepoTags": []string{name}, "Config": map[string]any{"Labels": f.inherit(name, nil)}})
			return
		}
	}
	refuse(w, http.StatusNotFound, "No such image: %s", r.PathValue("id"))
}

func (f *Fake) servePull(w http.ResponseWriter, r *http.Request) {
	image := r.URL.Query().Get("fromImage") + ":" + r.URL.Query().Get("tag")
	w.Header().Set("Content-Type", "application/json")
	lines := []string{`{"status":"Pulling from library","id":"x"}`}
	if image == "slow:1" {
		lines = append(lines, `{"status":"Downloading","progress":"[==> ]"}`, `{"status":"Status: Downloaded newer image"}`)
		f.pulled = append(f.pulled, image)
	} else {
		lines = append(lines, `{"errorDetail":{"message":"pull access denied for x"},"error":"pull access denied for `+image+`, repository does not exist or may require 'docker login'"}`)
	}
	for _, line := range lines {
		_, _ = w.Write([]byte(line + "\r\n")) //nolint:gosec // a client of a test reads it
	}
}

func (f *Fake) serveCreate(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Image                string
		Entrypoint, Cmd, Env []string
		Labels               map[string]string
		HostConfig           map[string]any
	}
	wiretest.Decode(r, &body)
	name := r.URL.Query().Get("name")
	b := f.newBox()
	b.name = cmp.Or(name, fmt.Sprintf("quiet_name_%d", f.made))
	switch {
	case body.Image != Image && !slices.Contains(f.pulled, body.Image):
		refuse(w, http.StatusNotFound, "No such image: %s", body.Image)
		return
	case f.find(b.name) != nil:
		refuse(w, http.StatusConflict, "Conflict. The container name %q is already in use by container %q. You have to remove (or rename) that container to be able to reuse that name.", "/"+b.name, f.find(b.name).id)
		return
	}
	b.image, b.entrypoint, b.cmd, b.env, b.labels, b.host = body.Image, body.Entrypoint, body.Cmd, body.Env, f.inherit(body.Image, body.Labels), body.HostConfig
	if f.o.NoGroups { // dropped without a word
		for _, limit := range []string{"Memory", "MemorySwap", "NanoCpus", "PidsLimit"} {
			delete(b.host, limit)
		}
	}
	f.boxes = append(f.boxes, b)
	f.note(b, "create", nil)
	warnings := []string{}
	if f.o.NoLimits && b.host["Memory"] != nil {
		warnings = append(warnings, "Your kernel does not support memory limit capabilities or the cgroup is not mounted. Limitation discarded.")
	}
	wiretest.JSON(w, http.StatusCreated, map[string]any{"Id": b.id, "Warnings": warnings})
}

func (f *Fake) serveStart(w http.ResponseWriter, _ *http.Request, b *box) {
	if b.state == "running" {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if err := f.run(b); err != nil {
		refuse(w, http.StatusBadRequest, "failed to create task for container: OCI runtime create failed: exec: %q: %v", b.entrypoint[0], err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (f *Fake) serveStop(w http.ResponseWriter, r *http.Request, b *box) {
	grace, err := strconv.Atoi(cmp.Or(r.URL.Query().Get("t"), "10"))
	if err != nil {
		refuse(w, http.StatusBadRequest, "t is no number")
		return
	}
	switch {
	case f.o.Deaf:
	case f.o.Podman && b.state == "paused":
		refuse(w, http.StatusInternalServerError, "can only stop created or running containers. %s is in state paused: container state improper", b.id)
		return
	case !b.runs():
		w.WriteHeader(http.StatusNotModified)
		return
	default:
		f.end(b, time.Duration(grace)*time.Second)
		f.note(b, "stop", nil)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (f *Fake) serveUnpause(w http.ResponseWriter, _ *http.Request, b *box) {
	if b.state != "paused" {
		refuse(w, http.StatusInternalServerError, "Container %s is not paused", b.id)
		return
	}
	b.state = "running"
	f.note(b, "unpause", nil)
	w.WriteHeader(http.StatusNoContent)
}

// serveUpdate changes the restart policy. Podman has that since 5.1.
func (f *Fake) serveUpdate(w http.ResponseWriter, r *http.Request, b *box) {
	var body struct{ RestartPolicy struct{ Name string } }
	wiretest.Decode(r, &body)
	switch {
	case f.o.Podman:
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	case b.remove:
		refuse(w, http.StatusConflict, "Restart policy cannot be updated because AutoRemove is enabled for the container")
		return
	}
	b.restart = body.RestartPolicy.Name
	f.note(b, "update", nil)
	wiretest.JSON(w, http.StatusOK, map[string]any{"Warnings": []string{}})
}

func (f *Fake) serveDelete(w http.ResponseWriter, r *http.Request, b *box) {
	switch {
	case f.o.Deaf:
	case f.o.Orphans != 0:
		f.loseBox(b.id)
		refuse(w, f.o.Orphans, "driver failed to remove the root file system")
		return
	case b.runs() && r.URL.Query().Get("force") != "1":
		refuse(w, http.StatusConflict, "cannot remove container %q: container is running: stop the container before removing or force remove", "/"+b.name)
		return
	default:
		if b.runs() {
			f.end(b, 0)
		}
		f.drop(b)
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveEvents sends what is remembered from since to the time before until.
func (f *Fake) serveEvents(w http.ResponseWriter, r *http.Request) {
	since, err := parseTime(r.URL.Query().Get("since"))
	until, err2 := parseTime(r.URL.Query().Get("until"))
	if err = errors.Join(err, err2); err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	asked := filter(r)
	if wait := until.Sub(f.o.Now()); wait > 0 { // the engine waits for that time
		f.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
		}
		f.mu.Lock()
	}
	w.Header().Set("Content-Type", "application/jsonl")
	w.WriteHeader(http.StatusOK)
	for _, e := range f.events {
		if f.o.Forgets || e.at.Before(since) || !e.at.Before(until) || len(asked["container"]) > 0 && !slices.Contains(asked["container"], e.id) {
			continue
		}
		text, err := json.Marshal(map[string]any{"Type": "container", "Action": e.action, "Actor": map[string]any{"ID": e.id, "Attributes": e.attributes}, "scope": "local", "time": e.at.Unix(), "timeNano": e.at.UnixNano()})
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(append(text, '\n'))
	}
}
