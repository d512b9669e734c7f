package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// served asks a world and gives the status and the body.
func served(t *testing.T, h http.Handler, method, target string, header ...string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestAnEndTakesItsTimeInEveryWorld(t *testing.T) {
	t.Parallel()
	for kind, at := range map[string]struct{ list, one string }{
		"monotask":   {"/api/sandbox/list", "/api/sandbox/"},
		"e2b":        {"/v2/sandboxes?limit=100", "/sandboxes/"},
		"pods":       {"/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods/"},
		"containers": {"", "/v1.47/containers/"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { endsInTime(t, kind, at.list, at.one) })
		})
	}
}

// endsInTime ends one thing of a world, in virtual time.
func endsInTime(t *testing.T, kind, list, one string) {
	t.Helper()
	w := newWorld(3, time.Now())
	h := kinds()[kind](w)
	id := w.ids[1]
	if list != "" {
		if code, body := served(t, h, http.MethodGet, list); code != http.StatusOK || strings.Count(body, id) == 0 {
			t.Errorf("list: %d %s", code, body)
		}
	}
	if code, body := served(t, h, http.MethodDelete, one+id); code >= 300 {
		t.Errorf("delete: %d %s", code, body)
	}
	if got := w.count(); got.Left != 3 || got.Asked != 1 || got.Most != 1 {
		t.Errorf("right after: %+v", got)
	}
	time.Sleep(endTakes + callTakes)
	if got := w.count(); got.Left != 2 {
		t.Errorf("a while after: %+v", got)
	}
	if code, _ := served(t, h, http.MethodDelete, one+id); code != http.StatusNotFound {
		t.Errorf("what is gone can be deleted: %d", code)
	}
}

func TestAHostAnswersUntilItsSandboxIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(1, time.Now())
	h := kinds()["e2b"](w)
	if code, _ := served(t, h, http.MethodGet, "/health", "E2b-Sandbox-Id", w.ids[0]); code != http.StatusNoContent {
		t.Error(code)
	}
	if code, body := served(t, h, http.MethodGet, "/health", "E2b-Sandbox-Id", "other"); code != http.StatusBadGateway || !strings.Contains(body, "not found") {
		t.Error(code, body)
	}
}

func TestADeadSandboxIsListedAndDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(10, time.Now())
		h := kinds()["e2b-dead"](w)
		began := time.Now()
		if code, body := served(t, h, http.MethodGet, "/health", "E2b-Sandbox-Id", w.ids[9]); code != http.StatusBadGateway || !strings.Contains(body, "port is not open") {
			t.Error(code, body)
		}
		if took := time.Since(began); took != deadTakes {
			t.Error(took)
		}
		if _, body := served(t, h, http.MethodGet, "/sandboxes/"+w.ids[9]+"/metrics"); body != "[]" {
			t.Error(body)
		}
		got := w.count()
		if got.Kinds["host"+deadSuffix].N != 1 || got.Kinds["metrics"+deadSuffix].N != 1 {
			t.Errorf("%+v", got)
		}
		if ideal := got.ideal(1); ideal != 1100 {
			t.Error(ideal)
		}
	})
}

func TestContest(t *testing.T) {
	t.Parallel()
	var first, second result
	for i := range 20 {
		first.add(spent{wall: 100, cpu: 7, peak: 20}, tally{Requests: 5, Most: 2})
		second.add(spent{wall: float64(191 + i), cpu: 7, peak: 20}, tally{Requests: 5, Most: 2, Left: 3})
	}
	var b bytes.Buffer
	printContest(&b, []entrant{{name: "a"}, {name: "b"}}, []result{first, second})
	for _, want := range []string{
		"| a | 100 | 7 | 20.0 | 5 | 2 | 0 |\n", "| b | 201 | 7 | 20.0 | 5 | 2 | 3 |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
