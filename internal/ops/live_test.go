package ops_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/providers/fake"
)

// TestARoundSaysWhatItCouldNotRead: counters that fail cost no row, and a listing that fails is in both the
// round and what is known of the connection.
func TestARoundSaysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	p := prod("stuck001")
	live, err := ops.NewLive(t.Context(), newSite(t, oneProfile, p).env(t, &recorder{}))
	require.NoError(t, err)
	r := live.Round(t.Context(), "prod")
	require.NoError(t, r.Err)
	require.NoError(t, r.FiguresErr)
	assert.NotNil(t, r.Figures.Counts.Active)
	assert.False(t, r.Connection.CompleteAt.IsZero())

	p.Break(fake.Fault{Op: fake.OpStats, Err: fault.New(fault.KindUnavailable, "HTTP 500")})
	r = live.Round(t.Context(), "prod")
	require.NoError(t, r.Err)
	require.ErrorContains(t, r.FiguresErr, "HTTP 500")
	assert.Len(t, r.Rows, 3)
	assert.Nil(t, r.Figures.Counts.Active)

	p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "HTTP 503")})
	failed := live.Round(t.Context(), "prod")
	require.ErrorContains(t, failed.Err, "HTTP 503")
	require.ErrorContains(t, failed.Connection.Err, "HTTP 503")
	assert.Equal(t, r.Connection.CompleteAt, failed.Connection.CompleteAt)
}
