package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// e2bAPI is E2B's API as far as cleanup, ls and top use it, and the hosts of its sandboxes, all
// at one address. A sandbox that was asked to end is listed as running until it is gone.
type e2bAPI struct {
	cpu    func(n int) float64 // percent of the machine of the n-th sandbox
	bare   bool                // one sample of each, and no list of processes
	noBulk bool                // an older level of the API: one sandbox's metrics at a time
	dead   func(n int) bool    // listed as running, without samples, and nothing inside answers; nil = none is
	prints bool                // the last line of each log is a few seconds old, not of the start
}

// The processor time of the fleets, in percent of a machine of two cores.
func atWork(n int) float64 { return 5 + float64(n%30) }
func busy(int) float64     { return 100 }
func idle(int) float64     { return 0.1 }

func tenthIdle(n int) float64 {
	if n%10 == 0 {
		return idle(n)
	}
	return atWork(n)
}

// deadTakes is how long the edge takes to say that nothing in a sandbox answers.
const deadTakes = 1100 * time.Millisecond

// threeTenths of the sandboxes are dead.
func threeTenths(n int) bool { return n%10 > 6 }

func (a *e2bAPI) isDead(id string) bool { return a.dead != nil && a.dead(number(id)) }

// of names a kind of requests about one sandbox.
func (a *e2bAPI) of(kind, id string) string {
	if a.isDead(id) {
		return kind + deadSuffix
	}
	return kind
}

// deadSuffix marks the kinds of requests about dead sandboxes.
const deadSuffix = " (dead)"

// sampleEvery is the distance of two samples of the metrics API.
const sampleEvery = 5 * time.Second

// sample is written by hand: ten thousand histories shall not make the server what is measured.
func (a *e2bAPI) sample(n int, at time.Time) json.RawMessage {
	text := append([]byte(nil), `{"timestamp":"`...)
	text = at.UTC().AppendFormat(text, time.RFC3339)
	text = append(text, `","timestampUnix":`...)
	text = strconv.AppendInt(text, at.Unix(), 10)
	text = append(text, `,"cpuCount":2,"cpuUsedPct":`...)
	text = strconv.AppendFloat(text, a.cpu(n), 'f', -1, 64)
	return append(text, `,"memUsed":209715200,"memTotal":536870912,"memCache":20971520,"diskUsed":1073741824,"diskTotal":10737418240}`...)
}

// samples answers the requested range; without one the newest sample.
func (a *e2bAPI) samples(n int, r *http.Request) []byte {
	now, all := time.Now(), []byte{'['}
	if start, err := strconv.ParseInt(r.URL.Query().Get("start"), 10, 64); err == nil && !a.bare {
		for at := time.Unix(start, 0); at.Before(now.Add(-sampleEvery)); at = at.Add(sampleEvery) {
			all = append(append(all, a.sample(n, at)...), ',')
		}
	}
	return append(append(all, a.sample(n, now)...), ']')
}

func (a *e2bAPI) row(w *world, id string) map[string]any {
	return map[string]any{
		"templateID": "base", "sandboxID": id, "clientID": "6532622b", "startedAt": w.born.UTC(), "endAt": w.born.Add(24 * time.Hour).UTC(),
		"cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024, "state": "running", "envdVersion": "0.4.1", "metadata": map[string]string{"team": "agents"},
	}
}

// number is the position of a sandbox, from its id.
func number(id string) int {
	n, _ := strconv.ParseInt(strings.TrimPrefix(id, "i"), 16, 64)
	return int(n)
}

func (a *e2bAPI) handler(w *world) http.Handler {
	mux := http.NewServeMux()
	many := func(kind string, serve http.HandlerFunc) http.HandlerFunc {
		return w.counted(func(*http.Request) string { return kind }, serve)
	}
	one := func(kind string, serve func(out http.ResponseWriter, r *http.Request, id string)) http.HandlerFunc {
		return w.counted(func(r *http.Request) string { return a.of(kind, r.PathValue("id")) }, func(out http.ResponseWriter, r *http.Request) {
			id := r.PathValue("id")
			if there, _ := w.find(id); !there {
				answer(out, http.StatusNotFound, map[string]any{"code": 404, "message": "Sandbox \"" + id + "\" doesn't exist or you don't have access to it"})
				return
			}
			serve(out, r, id)
		})
	}
	mux.HandleFunc("GET /v2/sandboxes", many("list", func(out http.ResponseWriter, r *http.Request) { a.list(w, out, r) }))
	mux.HandleFunc("GET /sandboxes/{id}", one("get", func(out http.ResponseWriter, _ *http.Request, id string) { answer(out, http.StatusOK, a.row(w, id)) }))
	mux.HandleFunc("GET /v2/sandboxes/{id}/logs", one("logs", func(out http.ResponseWriter, _ *http.Request, _ string) {
		lines := []any{map[string]any{"timestamp": w.born, "level": "info", "message": "envd started", "fields": map[string]string{}}}
		if a.prints {
			lines = append(lines, map[string]any{"timestamp": time.Now().Add(-sampleEvery), "level": "info", "message": "compiled another part", "fields": map[string]string{}})
		}
		answer(out, http.StatusOK, map[string]any{"logs": lines})
	}))
	mux.HandleFunc("GET /sandboxes/{id}/metrics", one("metrics", func(out http.ResponseWriter, r *http.Request, id string) {
		out.Header().Set("Content-Type", "application/json")
		if a.isDead(id) {
			_, _ = out.Write([]byte("[]"))
			return
		}
		_, _ = out.Write(a.samples(number(id), r)) // a client that has gone wants no answer
	}))
	if !a.noBulk {
		mux.HandleFunc("GET /sandboxes/metrics", many("bulk metrics", func(out http.ResponseWriter, r *http.Request) { a.bulk(w, out, r) }))
	}
	mux.HandleFunc("DELETE /sandboxes/{id}", one("delete", func(out http.ResponseWriter, _ *http.Request, id string) {
		w.end(id)
		out.WriteHeader(http.StatusNoContent)
	}))
	mux.HandleFunc("GET /health", a.host(w, func(out http.ResponseWriter) { out.WriteHeader(http.StatusNoContent) }))
	if !a.bare {
		mux.HandleFunc("POST /process.Process/List", a.host(w, func(out http.ResponseWriter) {
			process := map[string]any{"pid": 7, "config": map[string]any{"cmd": "sleep", "args": []string{"86400"}}}
			answer(out, http.StatusOK, map[string]any{"processes": []any{process}})
		}))
		mux.HandleFunc("GET /metrics", a.host(w, func(out http.ResponseWriter) {
			answer(out, http.StatusOK, map[string]any{"ts": time.Now().Unix(), "cpu_count": 2, "cpu_used_pct": 0.1, "mem_total": 536870912, "mem_used": 209715200})
		}))
	}
	return mux
}

// list is a page of at most pageRows running sandboxes.
func (a *e2bAPI) list(w *world, out http.ResponseWriter, r *http.Request) {
	ids := w.living()
	out.Header().Set("X-Total-Running", strconv.Itoa(len(ids)))
	from, _ := strconv.Atoi("0" + r.URL.Query().Get("nextToken")) // absent = the first page
	to := min(from+pageRows, len(ids))
	if to < len(ids) {
		out.Header().Set("X-Next-Token", strconv.Itoa(to))
	}
	rows := []any{}
	for _, id := range ids[min(from, to):to] {
		rows = append(rows, a.row(w, id))
	}
	answer(out, http.StatusOK, rows)
}

// bulk is the newest sample of at most 100 sandboxes; one that is not there has none.
func (a *e2bAPI) bulk(w *world, out http.ResponseWriter, r *http.Request) {
	ids := strings.Split(r.URL.Query().Get("sandbox_ids"), ",")
	if len(ids) > 100 || ids[0] == "" {
		answer(out, http.StatusBadRequest, map[string]any{"code": 400, "message": "validation error: sandbox_ids"})
		return
	}
	found := map[string]any{}
	for _, id := range ids {
		if there, _ := w.find(id); there && !a.isDead(id) {
			found[id] = a.sample(number(id), time.Now())
		}
	}
	answer(out, http.StatusOK, map[string]any{"sandboxes": found})
}

// host is the edge in front of the sandboxes.
func (a *e2bAPI) host(w *world, serve func(out http.ResponseWriter)) http.HandlerFunc {
	const header = "E2b-Sandbox-Id"
	return w.counted(func(r *http.Request) string { return a.of("host", r.Header.Get(header)) }, func(out http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(header)
		if there, _ := w.find(id); !there {
			answer(out, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox was not found", "code": 502})
			return
		}
		if a.isDead(id) {
			time.Sleep(deadTakes - w.takes)
			answer(out, http.StatusBadGateway, map[string]any{"sandboxId": id, "message": "The sandbox is running but port is not open", "code": 502})
			return
		}
		serve(out)
	})
}
