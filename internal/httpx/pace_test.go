package httpx_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
)

// TestThePaceHalvesAndRecovers measures the rate by the time of 20 requests.
func TestThePaceHalvesAndRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var status atomic.Int64
		status.Store(200)
		c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }, httpx.Options{Rate: 10, Burst: 1})
		ask := func(n int) time.Duration {
			began := time.Now()
			for range n {
				_, _ = c.Do(t.Context(), httpx.Request{Op: "a", Once: true}) // the answers do not matter
			}
			return time.Since(began).Round(10 * time.Millisecond)
		}
		assert.Equal(t, 1900*time.Millisecond, ask(20), "10 a second, the first at once")
		status.Store(429)
		ask(1)
		status.Store(200)
		assert.Equal(t, 2*time.Second, ask(10), "5 a second")
		status.Store(503)
		ask(1)
		ask(2) // within the same second: 2.5 a second is what it is for
		status.Store(200)
		assert.Equal(t, 2*time.Second, ask(5), "2.5 a second")
		pass(5 * time.Second)
		ask(2) // the second is paid for at the new pace
		assert.Equal(t, 1430*time.Millisecond, ask(5), "3.5 a second: a tenth of 10 more")
		for range 10 {
			pass(5 * time.Second)
			ask(1)
		}
		ask(1)
		assert.Equal(t, 2*time.Second, ask(20), "10 a second, and no more")
	})
}

func TestThePaceHasAFloor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, text(429, ""), httpx.Options{Rate: 4, Burst: 4})
		for range 12 {
			pass(time.Second)
			_, _ = c.Do(t.Context(), httpx.Request{Op: "a", Once: true}) // refused, as it should
		}
		began := time.Now()
		_, _ = c.Do(t.Context(), httpx.Request{Op: "a", Once: true}) // as above
		assert.LessOrEqual(t, time.Since(began), 2*time.Second, "one in two seconds")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Do(ctx, httpx.Request{Op: "get a", Once: true})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
		require.ErrorContains(t, err, "prod: get a: the API's rate limit (0.5 requests per second)")
		assert.NotEmpty(t, fault.HintOf(err))
		_, err = c.Stream(ctx, httpx.Request{Op: "get a"})
		require.ErrorContains(t, err, "the API's rate limit")

		last, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = c.Do(last, httpx.Request{Op: "get a", Once: true})
		assert.Equal(t, fault.KindTimeout, fault.KindOf(err), "its time was over anyhow: %v", err)
	})
}

// TestAListingIsNotSlowed: a listing and a hundred terminates within the budgets are not delayed.
func TestAListingIsNotSlowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, text(200, "{}"), httpx.Options{})
		began := time.Now()
		for range 600 {
			_, err := c.Do(t.Context(), httpx.Request{Op: "a"})
			require.NoError(t, err)
		}
		assert.Zero(t, time.Since(began))
		for range 150 {
			_, err := c.Do(t.Context(), httpx.Request{Op: "a"})
			require.NoError(t, err)
		}
		assert.Equal(t, time.Second, time.Since(began).Round(10*time.Millisecond))
	})
}

// TestWaitingForATurnEndsWithTheCaller.
func TestWaitingForATurnEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m := client(t, text(200, "{}"), httpx.Options{Rate: 0.01, Burst: 1})
		_, err := c.Do(t.Context(), httpx.Request{Op: "a"})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Do(ctx, httpx.Request{Op: "a"})
		assert.Equal(t, fault.KindCanceled, fault.KindOf(err))
		assert.Len(t, m.requests(), 1)
	})
}
