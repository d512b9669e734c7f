package httpx_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
)

// TestAHundredConnectionsAreReused, however many requests are in flight.
func TestAHundredConnectionsAreReused(t *testing.T) {
	t.Parallel()
	const inFlight = 100
	var together sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		together.Done()
		together.Wait() // so that each request has a connection of its own
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	var dials atomic.Int64
	c, err := httpx.New(httpx.Net{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}, httpx.Options{Profile: "prod", Base: server.URL})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	for range 3 {
		together.Add(inFlight)
		var all sync.WaitGroup
		for range inFlight {
			all.Go(func() {
				_, err := c.Do(t.Context(), httpx.Request{Op: "get"})
				assert.NoError(t, err)
			})
		}
		all.Wait()
	}
	assert.Less(t, dials.Load(), int64(inFlight+inFlight/2), "300 requests of 100 at once")
}
