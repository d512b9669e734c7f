package metrics_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/metrics"
)

func TestServeAnswersUntilTheEnd(t *testing.T) {
	t.Parallel()
	l, err := metrics.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- metrics.Serve(ctx, l, func() metrics.Set { return metrics.Cleanup{ExitCode: 3}.Set() })
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/metrics", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Contains(t, string(body), "sbx_cleanup_exit_code 3")
	cancel()
	require.NoError(t, <-ended)
}

func TestOnlyThisMachineMayAsk(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", ":9464", "0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464", "example.com:9464", "9464"} {
		_, err := metrics.Listen(t.Context(), address)
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), "%q", address)
	}
	_, err := metrics.Listen(t.Context(), "127.0.0.1:99999")
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
}
