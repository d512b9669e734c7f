package main

import (
	"net/http"
	"strconv"
	"time"
)

// worker is a row of MonoTask's list; it is written a thousand times over.
type worker struct {
	ID         string    `json:"id"`
	Status     string    `json:"status"`
	CreatedAt  time.Time `json:"created_at"`
	AgeMinutes float64   `json:"age_minutes"`
	AgentType  string    `json:"agent_type"`
	TaskID     string    `json:"task_id"`
}

// monotask is the API of MonoTask's agent worker: one list without pages, a record,
// its log, its figures, DELETE. It is the protocol with the fewest requests for one
// verified end.
func monotask(w *world) http.Handler {
	mux := http.NewServeMux()
	row := func(id string, ending bool) worker {
		status := "running"
		if ending {
			status = "terminating"
		}
		return worker{id, status, w.born.UTC(), time.Since(w.born).Minutes(), "implementation", "t-" + id[13:]}
	}
	one := func(serve func(out http.ResponseWriter, id string, ending bool)) http.HandlerFunc {
		return w.takes(func(out http.ResponseWriter, r *http.Request) {
			there, ending := w.find(r.PathValue("id"))
			if !there {
				answer(out, http.StatusNotFound, map[string]string{"error": "sandbox not found"})
				return
			}
			serve(out, r.PathValue("id"), ending)
		})
	}
	mux.HandleFunc("GET /api/sandbox/list", w.takes(func(out http.ResponseWriter, _ *http.Request) {
		rows := []any{}
		for _, id := range w.living() {
			_, ending := w.find(id)
			rows = append(rows, row(id, ending))
		}
		answer(out, http.StatusOK, rows)
	}))
	mux.HandleFunc("GET /api/sandbox/{id}", one(func(out http.ResponseWriter, id string, ending bool) {
		answer(out, http.StatusOK, row(id, ending))
	}))
	mux.HandleFunc("GET /api/sandbox/{id}/logs", one(func(out http.ResponseWriter, _ string, _ bool) {
		var lines []map[string]any
		for i := range 60 {
			lines = append(lines, map[string]any{"timestamp": w.born.Add(time.Duration(i) * time.Second).UnixMilli(), "level": "info", "message": "step " + strconv.Itoa(i) + " of the task is done"})
		}
		answer(out, http.StatusOK, lines)
	}))
	mux.HandleFunc("GET /api/sandbox/{id}/resources", one(func(out http.ResponseWriter, _ string, _ bool) {
		answer(out, http.StatusOK, map[string]any{"cpu_percent": 0, "memory_mb": 120, "duration_ms": 3600000, "operations": 42})
	}))
	mux.HandleFunc("DELETE /api/sandbox/{id}", one(func(out http.ResponseWriter, id string, _ bool) {
		w.end(id)
		answer(out, http.StatusOK, map[string]bool{"success": true})
	}))
	return mux
}

// e2b is E2B's API as far as cleanup uses it, and the hosts of its sandboxes, all at
// one address. A sandbox that was asked to end is listed as running until it is gone.
func e2b(w *world) http.Handler {
	mux := http.NewServeMux()
	row := func(id string) map[string]any {
		return map[string]any{
			"templateID": "base", "sandboxID": id, "clientID": "6532622b", "startedAt": w.born.UTC(), "endAt": w.born.Add(24 * time.Hour).UTC(),
			"cpuCount": 2, "memoryMB": 512, "diskSizeMB": 1024, "state": "running", "envdVersion": "0.4.1", "metadata": map[string]string{"team": "agents"},
		}
	}
	one := func(serve func(out http.ResponseWriter, id string)) http.HandlerFunc {
		return w.takes(func(out http.ResponseWriter, r *http.Request) {
			if there, _ := w.find(r.PathValue("id")); !there {
				answer(out, http.StatusNotFound, map[string]any{"code": 404, "message": "Sandbox doesn't exist or you don't have access to it"})
				return
			}
			serve(out, r.PathValue("id"))
		})
	}
	mux.HandleFunc("GET /v2/sandboxes", w.takes(func(out http.ResponseWriter, r *http.Request) {
		ids := w.living()
		out.Header().Set("X-Total-Running", strconv.Itoa(len(ids)))
		from, _ := strconv.Atoi("0" + r.URL.Query().Get("nextToken")) // absent = the first page
		to := min(from+pageRows, len(ids))
		if to < len(ids) {
			out.Header().Set("X-Next-Token", strconv.Itoa(to))
		}
		rows := []any{}
		for _, id := range ids[min(from, to):to] {
			rows = append(rows, row(id))
		}
		answer(out, http.StatusOK, rows)
	}))
	mux.HandleFunc("GET /sandboxes/{id}", one(func(out http.ResponseWriter, id string) { answer(out, http.StatusOK, row(id)) }))
	mux.HandleFunc("GET /v2/sandboxes/{id}/logs", one(func(out http.ResponseWriter, _ string) {
		lines := []any{map[string]any{"timestamp": w.born, "level": "info", "message": "envd started", "fields": map[string]string{}}}
		answer(out, http.StatusOK, map[string]any{"logs": lines})
	}))
	mux.HandleFunc("GET /sandboxes/{id}/metrics", one(func(out http.ResponseWriter, _ string) {
		now := time.Now()
		answer(out, http.StatusOK, []any{map[string]any{"timestamp": now, "timestampUnix": now.Unix(), "cpuCount": 2, "cpuUsedPct": 0, "memUsed": 200 << 20, "memTotal": 512 << 20}})
	}))
	mux.HandleFunc("DELETE /sandboxes/{id}", one(func(out http.ResponseWriter, id string) {
		w.end(id)
		out.WriteHeader(http.StatusNoContent)
	}))
	mux.HandleFunc("GET /health", w.takes(func(out http.ResponseWriter, r *http.Request) {
		if there, _ := w.find(r.Header.Get("E2b-Sandbox-Id")); there {
			out.WriteHeader(http.StatusNoContent)
			return
		}
		answer(out, http.StatusBadGateway, map[string]any{"message": "The sandbox was not found", "code": 502})
	}))
	return mux
}
