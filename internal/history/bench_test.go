package history_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/history"
	"sbx/internal/sandbox"
	"sbx/internal/store"
)

// BenchmarkFlush stores one look at 200 and at 10,000 sandboxes in SQLite.
func BenchmarkFlush(b *testing.B) {
	for _, n := range []int{0, 200, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			st, err := store.New(store.Options{StateDir: b.TempDir()})
			require.NoError(b, err)
			b.Cleanup(func() { st.Close() }) //nolint:errcheck // of a test
			now := time.Now()
			r := history.NewRecorder(func() time.Time { return now })
			for b.Loop() {
				now = now.Add(time.Minute)
				r.AddCounts("prod", map[sandbox.State]int64{sandbox.StateRunning: int64(n)})
				for i := range n {
					r.AddUsage(ref(fmt.Sprintf("i%019d", i)), sandbox.Usage{At: now, CPUSeconds: new(float64(i) * 1.37), MemoryBytes: new(int64(i) << 14), Source: "metrics"})
				}
				require.NoError(b, r.Flush(b.Context(), st))
			}
		})
	}
}

// BenchmarkFlushListed stores what a listing with 200 failed sandboxes adds to a sample.
func BenchmarkFlushListed(b *testing.B) {
	st, err := store.New(store.Options{StateDir: b.TempDir()})
	require.NoError(b, err)
	b.Cleanup(func() { st.Close() }) //nolint:errcheck // of a test
	now := time.Now()
	r := history.NewRecorder(func() time.Time { return now })
	failed := make([]history.Seen, 200)
	for i := range failed {
		box := sandbox.Sandbox{Provider: "prod", ID: fmt.Sprintf("i%019d", i), State: sandbox.StateFailed, CreatedAt: now, EndedAt: now, TaskID: "t-1"}
		failed[i] = history.Seen{Sandbox: box, At: now, Reason: "it has ended"}
	}
	for b.Loop() {
		now = now.Add(time.Minute)
		r.AddCounts("prod", map[sandbox.State]int64{sandbox.StateFailed: 200})
		r.AddListed("prod", failed)
		require.NoError(b, r.Flush(b.Context(), st))
	}
}
