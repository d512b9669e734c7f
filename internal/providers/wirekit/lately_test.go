package wirekit_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers/wirekit"
)

// A read is known for a moment, and an error is known only where it says that there is no such sandbox.
func TestLately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l wirekit.Lately[int]
		known := func(id string) bool {
			_, known, _ := l.Last(t.Context(), id)
			return known
		}
		assert.False(t, known("a"))
		l.Keep("a", time.Now(), 1, nil)
		l.Keep("a", time.Now().Add(-time.Millisecond), 2, nil)
		got, has, err := l.Last(t.Context(), "a")
		require.NoError(t, err)
		assert.True(t, has)
		assert.Equal(t, 1, got, "an earlier read does not replace a later one")
		ended, end := context.WithCancel(t.Context())
		end()
		_, has, _ = l.Last(ended, "a")
		assert.False(t, has, "an ended context knows nothing")
		<-time.After(wirekit.LatelyFor)
		assert.True(t, known("a"))
		<-time.After(time.Millisecond)
		assert.False(t, known("a"))
		l.Keep("a", time.Now(), 0, fault.New(fault.KindNotFound, "none"))
		_, has, err = l.Last(t.Context(), "a")
		assert.True(t, has)
		assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
		l.Keep("a", time.Now(), 0, errors.New("a trouble"))
		assert.False(t, known("a"))
		l.Keep("a", time.Now(), 3, nil)
		l.Forget("a")
		assert.False(t, known("a"))
		for i := range 1000 {
			l.Keep(strconv.Itoa(i), time.Now(), i, nil)
			<-time.After(10 * time.Millisecond)
		}
		assert.True(t, known("999"))
	})
}

// The queries of a look that begin together share an answer, and no error; without a look each reads.
func TestInLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		read := func() (int64, error) {
			<-time.After(100 * time.Millisecond)
			return reads.Add(1), nil
		}
		together := func(ctx context.Context) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					_, err := wirekit.InLook(ctx, "a", read)
					assert.NoError(t, err)
				})
			}
			all.Wait()
		}
		together(t.Context())
		assert.EqualValues(t, 4, reads.Load(), "without a look")
		look := httpx.Look(t.Context())
		together(look)
		assert.EqualValues(t, 5, reads.Load())
		_, err := wirekit.InLook(look, "b", read)
		require.NoError(t, err)
		assert.EqualValues(t, 6, reads.Load(), "another sandbox")
		<-time.After(wirekit.LatelyFor)
		together(look)
		assert.EqualValues(t, 7, reads.Load(), "too old")
		broken := errors.New("broken")
		_, err = wirekit.InLook(look, "c", func() (int64, error) { return 0, broken })
		require.ErrorIs(t, err, broken)
		n := reads.Load()
		got, err := wirekit.InLook(look, "c", read)
		require.NoError(t, err, "an error is nobody else's")
		assert.Equal(t, n+1, got)
		wirekit.NoteInLook(look, "d", time.Now(), int64(77))
		got, err = wirekit.InLook(look, "d", read)
		require.NoError(t, err)
		assert.EqualValues(t, 77, got)
	})
}
