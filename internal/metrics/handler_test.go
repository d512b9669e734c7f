package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"sbx/internal/metrics"
)

func TestHandlerShowsThePresent(t *testing.T) {
	t.Parallel()
	asked := 0.0
	h := metrics.Handler(func() metrics.Set {
		asked++
		var s metrics.Set
		s.Gauge("asked", "", asked)
		return s
	})
	for want := 1.0; want <= 2; want++ {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		assert.Equal(t, http.StatusOK, w.Code)
		assert.Equal(t, "text/plain; version=0.0.4; charset=utf-8", w.Header().Get("Content-Type"))
		assert.InDelta(t, want, parsed(t, w.Body.String())["asked"].GetMetric()[0].GetGauge().GetValue(), 0)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/metrics", nil))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
	assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
}
