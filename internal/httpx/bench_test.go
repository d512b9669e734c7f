package httpx_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
)

type row struct {
	ID, Name, State string
	Labels          map[string]string
	CPU             int
}

// BenchmarkPage reads a page of 100 rows with net/http and with the client: the difference is the
// cost of deadlines, limits, redaction and rate.
func BenchmarkPage(b *testing.B) {
	rows := make([]string, 100)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":"box%08d","name":"agent %d","state":"running","labels":{"team":"red","task":"t-%d"},"cpu":%d}`, i, i, i, i%4)
	}
	page := []byte("[" + strings.Join(rows, ",") + "]")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
	b.Cleanup(server.Close)
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL, nil)
			require.NoError(b, err)
			res, err := server.Client().Do(req)
			require.NoError(b, err)
			body, err := io.ReadAll(res.Body)
			require.NoError(b, err)
			_ = res.Body.Close()
			var got []row
			require.NoError(b, json.Unmarshal(body, &got)) //nolint:musttag // its fields are spelled as they come
		}
	})
	b.Run("httpx", func(b *testing.B) {
		c, err := httpx.New(httpx.Net{}, httpx.Options{Base: server.URL, Rate: 1e9, Burst: 1e9})
		require.NoError(b, err)
		b.Cleanup(c.Close)
		for b.Loop() {
			var got []row
			_, err := c.JSON(b.Context(), httpx.Request{Op: "list"}, &got)
			require.NoError(b, err)
		}
	})
}
