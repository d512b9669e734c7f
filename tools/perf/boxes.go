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
		return w.serving(func(out http.ResponseWriter, r *http.Request) {
			there, ending := w.find(r.PathValue("id"))
			if !there {
				answer(out, http.StatusNotFound, map[string]string{"error": "sandbox not found"})
				return
			}
			serve(out, r.PathValue("id"), ending)
		})
	}
	mux.HandleFunc("GET /api/sandbox/list", w.serving(func(out http.ResponseWriter, _ *http.Request) {
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
