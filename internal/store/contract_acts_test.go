package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/store"
)

// testActs: what was added comes back oldest first, the same place is replaced, and old ones go.
func testActs(t *testing.T, s subject) {
	t.Helper()
	now := exampleTime(20).UTC().Truncate(time.Microsecond)
	act := func(run string, seq int, ago time.Duration, body string) store.Act {
		return store.Act{Run: run, Seq: seq, At: now.Add(-ago), Body: body}
	}
	keep := now.Add(-24 * time.Hour)
	require.NoError(t, s.AddActs(t.Context(), []store.Act{act("r-2", 1, time.Minute, `{"a":1}`), act("r-2", 2, 0, "odd\x00text")}, keep))
	require.NoError(t, s.AddActs(t.Context(), []store.Act{act("r-1", 1, time.Hour, `{}`), act("r-2", 1, time.Minute, `{"a":2}`)}, keep))
	require.NoError(t, s.AddActs(t.Context(), nil, now), "nothing deletes nothing")
	all, err := s.Acts(t.Context(), time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 3)
	assert.Equal(t, act("r-1", 1, time.Hour, `{}`), all[0])
	assert.Equal(t, `{"a":2}`, all[1].Body, "replaced")
	assert.NotEmpty(t, all[2].Body)
	recent, err := s.Acts(t.Context(), now.Add(-time.Minute))
	require.NoError(t, err)
	assert.Len(t, recent, 2, "from that moment on")

	require.NoError(t, s.AddActs(t.Context(), []store.Act{act("r-3", 1, 0, `{}`)}, now.Add(-2*time.Minute)))
	all, err = s.Acts(t.Context(), time.Time{})
	require.NoError(t, err)
	assert.Len(t, all, 3, "what is older than the bound is dropped")
	for name, bad := range map[string]store.Act{"no run": {At: now}, "no time": {Run: "r-1"}} {
		assert.Equal(t, fault.KindUsage, fault.KindOf(s.AddActs(t.Context(), []store.Act{bad}, keep)), name)
	}
}
