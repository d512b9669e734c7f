package kubernetes_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/testkit/kubernetestest"
)

// BenchmarkRefresh is a refresh of the dashboard with 2,000 objects: 500 pods, 500 jobs and 500 sandboxes without a
// pod, and 500 jobs with one each. Answers of the API are made once, so that the fake costs little.
func BenchmarkRefresh(b *testing.B) {
	for name, live := range map[string]bool{"live": true, "list": false} {
		b.Run(name, func(b *testing.B) {
			f := kubernetestest.New(b, kubernetestest.Options{Virtual: true})
			for range 500 {
				f.Add(kubernetestest.Seed{})
				f.Add(kubernetestest.Seed{Kind: "job", NoPod: true})
				f.Add(kubernetestest.Seed{Kind: "sandbox", NoPod: true})
				f.Add(kubernetestest.Seed{Kind: "job"})
			}
			h := &repeating{f: f, answers: map[string]*httptest.ResponseRecorder{}}
			server := httptest.NewServer(h)
			defer server.Close()
			c := open(b, kubernetestest.Settings(b, server.URL), httpx.Net{})
			defer c.Close()
			q := providers.Query{Live: live}
			_, err := listed(b.Context(), c, q)
			require.NoError(b, err)
			for live && f.Watches() < 3 {
				<-time.After(time.Millisecond)
			}
			b.ReportAllocs()
			rounds, requests, bytes := 0.0, h.requests, h.bytes
			for b.Loop() {
				rounds++
				n := 0
				for _, err := range c.List(b.Context(), q) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				require.Equal(b, 2000, n)
			}
			b.ReportMetric((h.bytes-bytes)/rounds, "bytes/refresh")
			b.ReportMetric((h.requests-requests)/rounds, "requests/refresh")
		})
	}
}

// repeating answers the first request to an address by the fake, and the others with the same.
type repeating struct {
	f       *kubernetestest.Fake
	mu      sync.Mutex
	answers map[string]*httptest.ResponseRecorder

	requests, bytes float64 // bytes of bodies, as they would be without compression
}

// ServeHTTP implements http.Handler.
func (h *repeating) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.RawQuery, "watch=") {
		h.f.ServeHTTP(w, r)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests++
	answer, known := h.answers[r.URL.String()]
	if !known {
		answer = httptest.NewRecorder()
		h.f.ServeHTTP(answer, r)
		h.answers[r.URL.String()] = answer
	}
	h.bytes += float64(answer.Body.Len())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}
