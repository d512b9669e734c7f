package omoios_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/omoios"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/omoiostest"
)

const socketRoute = "GET /api/v1/events/ws/events"

// waker runs WakeOnEvents and counts what it does.
type waker struct {
	woken atomic.Int64
	ended atomic.Bool

	mu    sync.Mutex
	trace []string
}

// lines are what was traced besides requests and answers.
func (w *waker) lines() []string {
	var notes []string
	for _, line := range w.all() {
		if strings.HasPrefix(line, "! WebSocket") {
			notes = append(notes, line)
		}
	}
	return notes
}

func (w *waker) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.trace)
}

// requests counts the handshakes that were traced, and answers those that were answered.
func (w *waker) requests() (sent, answered int) {
	for _, line := range w.all() {
		switch {
		case strings.HasPrefix(line, "> GET http://omoios/api/v1/events/ws/events?"):
			sent++
		case strings.HasPrefix(line, "< "):
			answered++
		}
	}
	return sent, answered
}

// startWaker begins to wait for the events of box; the function it returns ends that and waits for it.
func startWaker(t *testing.T, f *omoiostest.Fake, token string) (*waker, func()) {
	t.Helper()
	w := &waker{}
	trace := func(line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.trace = append(w.trace, line)
	}
	s, err := omoios.Type().Attach(t.Context(), providers.Profile{Name: "omoi", Type: omoios.TypeName, Settings: map[string]string{"url": "http://omoios", "token": token}},
		providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.Dial, Trace: trace}})
	require.NoError(t, err)
	c, ok := s.(*omoios.Client)
	require.True(t, ok)
	t.Cleanup(c.Close)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.WakeOnEvents(ctx, box, func() { w.woken.Add(1) })
		w.ended.Store(true)
	}()
	synctest.Wait()
	return w, func() { cancel(); <-done }
}

func step(f *omoiostest.Fake, of string) {
	f.Add(omoiostest.Event{Sandbox: of, Type: "agent.tool_use", Data: map[string]any{"full_diff": strings.Repeat("+", 200_000)}})
	synctest.Wait()
}

func TestAFrameAboutTheSandboxWakesAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "frames", func(t *testing.T) {
		f := omoiostest.New(t, omoiostest.Options{})
		w, end := startWaker(t, f, omoiostest.Token)
		defer end()
		began := time.Now()
		step(f, box)
		step(f, "another")
		step(f, box)
		assert.EqualValues(t, 2, w.woken.Load(), "a frame with a whole diff is read too")
		assert.Zero(t, time.Since(began))
		time.Sleep(10 * time.Minute)
		step(f, box)
		assert.EqualValues(t, 3, w.woken.Load())
		assert.Len(t, f.Calls(socketRoute), 1, "pings keep a socket that has no events")
		assert.Empty(t, w.lines())
	})
}

// TestASocketThatFailsIsTracedOnceAndOpenedAgain: within a minute and with growing pauses, or not at all.
func TestASocketThatFailsIsTracedOnceAndOpenedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode        omoiostest.SocketMode
		token, says string
		calls       int // within 10 minutes
		final       bool
	}{
		"silence":   {omoiostest.SocketSilent, omoiostest.Token, "nothing came for 1m15s", 7, false},
		"drop":      {omoiostest.SocketDrops, omoiostest.Token, "it was lost", 2, false},
		"garbage":   {omoiostest.SocketGarbage, omoiostest.Token, "a frame is not JSON", 2, false},
		"1013":      {omoiostest.SocketTryLater, omoiostest.Token, "it was closed with code 1013", 14, false},
		"4401":      {"", "wrong-5ec7e7", "the token is not accepted", 1, true},
		"404":       {omoiostest.SocketAbsent, omoiostest.Token, "the answer is HTTP 404", 1, true},
		"no token":  {"", "", "there is no token", 0, true},
		"unplugged": {"", omoiostest.Token, "it was lost", 2, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := omoiostest.New(t, omoiostest.Options{Socket: tc.mode})
			w, end := startWaker(t, f, tc.token)
			defer end()
			step(f, box)
			if name == "unplugged" {
				f.Unplug(errors.New("reset"))
				f.Unplug(nil)
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			assert.Equal(t, tc.final, w.ended.Load())
			assert.Len(t, f.Calls(socketRoute), tc.calls)
			require.Len(t, w.lines(), 1)
			assert.Contains(t, w.lines()[0], tc.says)
			all := strings.Join(w.all(), "\n")
			assert.NotContains(t, all, "5ec7e7", "a token is in no message")
			assert.NotContains(t, all, "\x1b")
			sent, answered := w.requests()
			assert.Equal(t, tc.calls, sent, "each handshake is traced as a request")
			assert.Equal(t, tc.calls, answered, all)
			if tc.final {
				return
			}
			f.Change(func(o *omoiostest.Options) { o.Socket = "" })
			f.Unplug(errors.New("reset"))
			f.Unplug(nil)
			time.Sleep(2 * time.Minute)
			before := w.woken.Load()
			step(f, box)
			assert.Equal(t, before+1, w.woken.Load(), "it works again")
			assert.Len(t, w.lines(), 1)
		})
	}
}

func TestAnUnreachableSocketNeverShowsItsAddress(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "unreachable", func(t *testing.T) {
		f := omoiostest.New(t, omoiostest.Options{})
		f.Unplug(errors.New("connection refused"))
		w, end := startWaker(t, f, omoiostest.Token)
		defer end()
		require.Len(t, w.lines(), 1)
		assert.Contains(t, w.lines()[0], "connection refused")
		assert.NotContains(t, w.lines()[0], "token=")
		require.Len(t, w.all(), 3, "the request and its failure")
		assert.Contains(t, w.all()[1], "connection refused")
		assert.Contains(t, w.all()[1], "token=***")
	})
}
