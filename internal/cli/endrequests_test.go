package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// TestEndRequestsOutliveTheProcess: each of them opens the store anew.
func TestEndRequestsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now().UTC().Truncate(time.Second)
	clock := func() time.Time { return now }
	process := func() endRequests {
		return endRequests{func(bool) (store.Store, error) { return store.New(store.Options{StateDir: dir, Now: clock}) }, clock}
	}
	a, b := sandbox.Ref{Provider: "prod", ID: "a"}, sandbox.Ref{Provider: "prod", ID: "b/with slash"}
	one := sandbox.EndRequest{At: now, Detail: "HTTP 500", StartedAt: now.Add(-time.Hour)}
	require.NoError(t, process().Keep(t.Context(), a, sandbox.EndRequest{Detail: "no answer"}))
	require.NoError(t, process().Keep(t.Context(), a, one))
	require.NoError(t, process().Keep(t.Context(), b, one))
	got, err := process().Unconfirmed(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[sandbox.Ref]sandbox.EndRequest{a: one, b: one}, got)
	require.NoError(t, process().Forget(t.Context(), a))
	require.NoError(t, process().Forget(t.Context(), a), "what is not there need not be forgotten")
	now = now.Add(endRequestsKept + time.Second)
	got, err = process().Unconfirmed(t.Context())
	require.NoError(t, err)
	assert.Empty(t, got, "older than any machine may run")
}
