package look

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/agentlog"
	"sbx/internal/fault"
)

// TestEventsOfAFileEndWithTheirContext: and a file that has changed between the two times that it is read is named.
func TestEventsOfAFileEndWithTheirContext(t *testing.T) {
	t.Parallel()
	const text = `{"event_type":"agent.started","created_at":"2026-11-20T12:00:00Z"}` + "\n" + `{"event_type":"agent.waiting","created_at":"2026-11-20T12:00:01Z"}` + "\n"
	r := &EventsResult{Name: "s.jsonl", file: filepath.Join(t.TempDir(), "s.jsonl")}
	require.NoError(t, os.WriteFile(r.file, []byte(text), 0o600))
	_, err := r.readStream(t.Context(), agentlog.Options{Places: true}, func() (io.ReadCloser, error) { return os.Open(r.file) })
	require.NoError(t, err)
	assert.Equal(t, 2, r.Len())
	assert.Empty(t, r.Events, "none is kept")

	ctx, cancel := context.WithCancelCause(t.Context())
	stop, n := errors.New("stop"), 0
	err = r.Each(ctx, false, func(*agentlog.Event, *agentlog.Beats) error { n++; cancel(stop); return nil })
	require.ErrorIs(t, err, stop)
	assert.Equal(t, 1, n)

	none := func(*agentlog.Event, *agentlog.Beats) error { return nil }
	require.NoError(t, os.WriteFile(r.file, []byte(text[:80]), 0o600))
	err = r.Each(t.Context(), false, none)
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	require.ErrorContains(t, err, "line 2 was changed while it was read")
	require.NoError(t, os.Remove(r.file))
	require.ErrorContains(t, r.Each(t.Context(), false, none), "it cannot be read: no such file")
}
