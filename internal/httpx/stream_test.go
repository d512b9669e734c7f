package httpx_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/testkit/bubble"
)

// drip sends a byte after each pause, then calls next.
func drip(pause time.Duration, n int, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out := http.NewResponseController(w)
		_ = out.Flush()
		for range n {
			pass(pause)
			_, _ = w.Write([]byte("."))
			_ = out.Flush()
		}
		if next != nil {
			next(w, r)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		read   string
		kind   fault.Kind
		says   string
		took   time.Duration
	}{
		"all at once":        {text(200, "abc"), "abc", fault.KindNone, "", 0},
		"slow, but moving":   {drip(9*time.Second, 20, nil), "....................", fault.KindNone, "", 3 * time.Minute},
		"stalls":             {drip(time.Second, 3, hang), "...", fault.KindUnavailable, "prod: follow a: stalled: no data for 10s", 13 * time.Second},
		"stalls at once":     {drip(0, 0, hang), "", fault.KindUnavailable, "stalled: no data for 10s", 10 * time.Second},
		"breaks off":         {drip(time.Second, 3, reset), "...", fault.KindUnavailable, "the answer was cut short", 3 * time.Second},
		"no headers":         {hang, "", fault.KindUnavailable, "no answer within 10s", 10 * time.Second},
		"late headers":       {func(http.ResponseWriter, *http.Request) { pass(9 * time.Second) }, "", fault.KindNone, "", 9 * time.Second},
		"refused":            {text(404, `{"message":"no box a"}`), "", fault.KindNotFound, "HTTP 404: no box a", 0},
		"unavailable, once":  {text(503, ""), "", fault.KindUnavailable, "HTTP 503", 0},
		"a body of an error": {begin("", hang), "", fault.KindUnavailable, "stalled", 10 * time.Second},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, m := client(t, tc.answer, httpx.Options{})
			began := time.Now()
			var got []byte
			s, err := c.Stream(t.Context(), httpx.Request{Op: "follow a"})
			if err == nil {
				got, err = io.ReadAll(s.Body)
				require.NoError(t, s.Body.Close())
				assert.Equal(t, 200, s.Status)
			}
			assert.Equal(t, tc.took, time.Since(began))
			assert.Equal(t, tc.read, string(got))
			assert.Equal(t, tc.kind, fault.KindOf(err), "%v", err)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
			}
			assert.Len(t, m.requests(), 1, "a stream is opened once")
		})
	}
}

// TestAStreamOfItsOwnStall: a client sets how long its API may be silent.
func TestAStreamOfItsOwnStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, drip(50*time.Second, 3, nil), httpx.Options{Stall: time.Minute})
		s, err := c.Stream(t.Context(), httpx.Request{Op: "a"})
		require.NoError(t, err)
		got, err := io.ReadAll(s.Body)
		require.NoError(t, err)
		assert.Equal(t, "...", string(got))
		require.NoError(t, s.Body.Close())
	})
}

// TestASlowReaderIsNoStall: time between reads does not count as a stall.
func TestASlowReaderIsNoStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := client(t, text(200, "abc"), httpx.Options{})
		s, err := c.Stream(t.Context(), httpx.Request{Op: "a"})
		require.NoError(t, err)
		var got []byte
		one := make([]byte, 1)
		for {
			pass(time.Minute)
			n, err := s.Body.Read(one)
			got = append(got, one[:n]...)
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
		}
		assert.Equal(t, "abc", string(got))
		require.NoError(t, s.Body.Close())
	})
}

// TestAStreamEndsWithItsCaller: the server sees the end at once, and no goroutine is left (the
// bubble would fail).
func TestAStreamEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(cancel func(), s *httpx.Stream){
		"by ctx":   func(cancel func(), _ *httpx.Stream) { cancel() },
		"by Close": func(_ func(), s *httpx.Stream) { _ = s.Body.Close() },
	} {
		bubble.Run(t, name, func(t *testing.T) {
			left := make(chan time.Time, 1)
			c, _ := client(t, drip(0, 1, func(w http.ResponseWriter, r *http.Request) { hang(w, r); left <- time.Now() }), httpx.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := c.Stream(ctx, httpx.Request{Op: "a"})
			require.NoError(t, err)
			_, err = s.Body.Read(make([]byte, 1))
			require.NoError(t, err)
			began := time.Now()
			time.AfterFunc(time.Second, func() { leave(cancel, s) })
			_, err = s.Body.Read(make([]byte, 1))
			assert.Equal(t, fault.KindCanceled, fault.KindOf(err), "%v", err)
			assert.Equal(t, time.Second, (<-left).Sub(began))
			_ = s.Body.Close()
		})
	}
}
