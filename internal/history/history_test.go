package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/history"
	"sbx/internal/sandbox"
	"sbx/internal/store"
	"sbx/internal/testkit/tiertest"
)

func ref(id string) sandbox.Ref { return sandbox.Ref{Provider: "prod", ID: id} }

func TestWhatWasSeenComesBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	st := store.Memory(func() time.Time { return now })
	r := history.NewRecorder(func() time.Time { return now })
	assert.False(t, r.Pending())
	require.NoError(t, r.Flush(t.Context(), st), "nothing to store")
	r.AddCounts("prod", map[sandbox.State]int64{sandbox.StateRunning: 3}, "going")
	used := sandbox.Usage{At: now.Add(-4 * time.Second), CPUSeconds: new(12.5), MemoryBytes: new(int64(1 << 20)), Source: "cgroup"}
	r.AddUsage(ref("a"), used)
	r.AddUsage(ref("b"), sandbox.Usage{At: now})
	long := strings.Repeat("x", 3000)
	r.AddSeen(history.Seen{Sandbox: sandbox.Sandbox{Provider: "prod", ID: "a", State: sandbox.StateFailed}, Cause: sandbox.CauseOOM, Logs: []string{long, long, "last"}, Usage: &used})
	assert.True(t, r.Pending())
	require.NoError(t, r.Flush(t.Context(), st))
	assert.False(t, r.Pending())

	looks, err := history.Looks(t.Context(), st, "prod", now.Add(-time.Hour))
	require.NoError(t, err)
	require.Len(t, looks, 1)
	assert.Equal(t, map[sandbox.State]int64{sandbox.StateRunning: 3}, looks[0].Counts)
	assert.Equal(t, []string{"going"}, looks[0].Ending)
	assert.Equal(t, used, looks[0].Usage["a"])
	assert.Nil(t, looks[0].Usage["b"].CPUSeconds, "what was not reported stays unknown")
	seen, found, err := history.LastSeen(t.Context(), st, ref("a"))
	require.NoError(t, err)
	require.True(t, found)
	assert.Equal(t, sandbox.CauseOOM, seen.Cause)
	assert.Equal(t, []string{long, "last"}, seen.Logs, "the last lines, within 4 KiB")
	_, found, err = history.LastSeen(t.Context(), st, ref("nobody"))
	require.NoError(t, err)
	assert.False(t, found)
}

// lockedStore takes no samples.
type lockedStore struct{ store.SampleStore }

func (lockedStore) AddSamples(context.Context, []store.Sample) error { return errors.New("locked") }

// TestWhatCouldNotBeStoredIsStoredNext, with what was seen since, and only once.
func TestWhatCouldNotBeStoredIsStoredNext(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	st := store.Memory(func() time.Time { return now })
	r := history.NewRecorder(func() time.Time { return now })
	see := func(n int64) {
		r.AddCounts("prod", map[sandbox.State]int64{sandbox.StateRunning: n})
		failed := sandbox.Sandbox{Provider: "prod", ID: fmt.Sprintf("f%d", n), State: sandbox.StateFailed, CreatedAt: now}
		r.AddListed("prod", []history.Seen{{Sandbox: failed, At: now}})
	}
	see(1)
	require.Error(t, r.Flush(t.Context(), lockedStore{st}))
	assert.True(t, r.Pending())
	now = now.Add(time.Minute)
	see(2)
	require.NoError(t, r.Flush(t.Context(), st))
	assert.False(t, r.Pending())
	looks, err := history.Looks(t.Context(), st, "prod", now.Add(-time.Hour))
	require.NoError(t, err)
	require.Len(t, looks, 2)
	assert.Equal(t, int64(1), looks[0].Counts[sandbox.StateRunning])
	assert.Equal(t, int64(2), looks[1].Counts[sandbox.StateRunning])
	for _, id := range []string{"f1", "f2"} {
		_, found, err := history.LastSeen(t.Context(), st, ref(id))
		require.NoError(t, err)
		assert.True(t, found, id)
	}
}

// TestAnEmptyListingIsASampleOfNone, and no missing one.
func TestAnEmptyListingIsASampleOfNone(t *testing.T) {
	t.Parallel()
	st := store.Memory(time.Now)
	for _, counts := range []map[sandbox.State]int64{nil, {}} {
		r := history.NewRecorder(time.Now)
		r.AddCounts("prod", counts)
		require.NoError(t, r.Flush(t.Context(), st))
	}
	looks, err := history.Looks(t.Context(), st, "prod", time.Time{})
	require.NoError(t, err)
	require.NotEmpty(t, looks)
	for _, l := range looks {
		n, known := l.Counts[sandbox.StateRunning]
		assert.True(t, known)
		assert.Zero(t, n)
	}
}

// TestABrokenSampleIsLeftOut, such as one of a newer version: the others are read.
func TestABrokenSampleIsLeftOut(t *testing.T) {
	t.Parallel()
	now := time.Now()
	st := store.Memory(time.Now)
	for i, body := range []string{"", "\x1f\x8bgarbage", "{", `{"c":{"running":2}}`, "\x00"} {
		require.NoError(t, st.AddSamples(t.Context(), []store.Sample{
			{Profile: "prod", At: now.Add(time.Duration(i) * time.Second), Body: []byte(body)},
			{Profile: "prod", Subject: "a", At: now.Add(time.Duration(i) * time.Second), Body: []byte(body)},
		}))
	}
	looks, err := history.Looks(t.Context(), st, "prod", time.Time{})
	require.NoError(t, err)
	require.Len(t, looks, 1)
	assert.EqualValues(t, 2, looks[0].Counts[sandbox.StateRunning])
	_, found, err := history.LastSeen(t.Context(), st, ref("a"))
	require.NoError(t, err)
	assert.True(t, found, "the one that can be read")
}

// TestAWeekIsBounded: 200 sandboxes looked at each minute for 8 days.
func TestAWeekIsBounded(t *testing.T) {
	t.Parallel()
	tiertest.SkipShort(t, "plays 11,520 looks, which takes seconds")
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	rng := rand.New(rand.NewPCG(1, 2))
	st := store.Memory(func() time.Time { return now })
	ids := make([]string, 200)
	for i := range ids {
		ids[i] = fmt.Sprintf("i%019x", rng.Uint64())
	}
	r := history.NewRecorder(func() time.Time { return now })
	looks := 8 * 24 * 60
	for n := range looks {
		now = now.Add(time.Minute)
		if n%30 != 0 && n < looks-180 { // a day of the test's time is short: what would be thinned anyway is not made
			continue
		}
		r.AddCounts("prod", map[sandbox.State]int64{sandbox.StateRunning: 200})
		for _, id := range ids {
			r.AddUsage(ref(id), sandbox.Usage{At: now, CPUSeconds: new(rng.Float64() * 1e4), MemoryBytes: new(rng.Int64N(1 << 30)), MemoryLimitBytes: new(int64(1 << 30)), Source: "metrics"})
		}
		require.NoError(t, r.Flush(t.Context(), st))
	}
	all, err := st.Samples(t.Context(), store.SampleQuery{Profile: "prod"})
	require.NoError(t, err)
	var fine, coarse, size int
	for _, s := range all {
		size = max(size, len(s.Body))
		if now.Sub(s.At) <= 2*time.Hour {
			fine++
		} else {
			coarse++
		}
		assert.LessOrEqual(t, now.Sub(s.At), 7*24*time.Hour)
	}
	assert.InDelta(t, 120, fine, 1)
	const most = 7*24*6 + 120 // one for ten minutes, and those of the last two hours
	assert.Less(t, size*most, 50<<20, "a week of 200 sandboxes")
	t.Logf("%d bytes a sample, %d of the last two hours, %d older; a week has at most %.1f MB", size, fine, coarse, float64(size*most)/1e6)
}

// FuzzSamples: a stored sample of any bytes is read or left out, and never a panic.
func FuzzSamples(f *testing.F) {
	for _, body := range []string{"", "{}", `{"c":{"running":2},"u":[{"i":"a","t":-3,"s":1.5}]}`, "\x1f\x8b\x08\x00", `{"sandbox":{"ID":"a"},"logs":["x"]}`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		st := store.Memory(time.Now)
		now := time.Now()
		if err := st.AddSamples(t.Context(), []store.Sample{{Profile: "prod", At: now, Body: body}, {Profile: "prod", Subject: "a", At: now, Body: body}}); err != nil {
			t.Skip("the store refuses a sample of more than MaxSampleBytes")
		}
		_, err := history.Looks(t.Context(), st, "prod", time.Time{})
		require.NoError(t, err)
		_, _, err = history.LastSeen(t.Context(), st, ref("a"))
		require.NoError(t, err)
	})
}
