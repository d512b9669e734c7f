package commands

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/httpx"
	"sbx/internal/providers"
	"sbx/internal/providers/omoios"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/omoiostest"
)

const agentBox = "omoios-886da5fe-0a9fee"

// followed is a sandbox whose agent reports to OmoiOS.
type followed struct {
	*bench
	prod *fake.Provider
	omoi *omoiostest.Fake
}

// newFollowed is a bench over a sandbox whose agent reports to OmoiOS.
func newFollowed(t *testing.T, mode omoiostest.SocketMode, token string) *followed {
	t.Helper()
	f := &followed{omoi: omoiostest.New(t, omoiostest.Options{Socket: mode})}
	f.bench, f.prod = oneFake(fake.Seed{Sandbox: sandbox.Sandbox{ID: "aaaa", Name: agentBox, State: sandbox.StateRunning, CreatedAt: noon, StartedAt: noon}})
	s, err := omoios.Type().Attach(t.Context(), providers.Profile{Name: "omoi", Type: omoios.TypeName, Settings: map[string]string{"url": "http://omoios", "token": token}},
		providers.Deps{Now: time.Now, Net: httpx.Net{Dial: f.omoi.Dial}})
	require.NoError(t, err)
	closer, ok := s.(interface{ Close() })
	require.True(t, ok)
	t.Cleanup(closer.Close)
	f.source = s
	f.omoi.Add(omoiostest.Event{Sandbox: agentBox, Type: "agent.started", At: time.Now()})
	return f
}

// report adds an event of the agent after some time.
func (f *followed) report(t *testing.T, after time.Duration, turn int) {
	t.Helper()
	timer := time.AfterFunc(after, func() {
		f.omoi.Add(omoiostest.Event{Sandbox: agentBox, Type: "agent.tool_use", Data: map[string]any{"turn": turn, "tool": fmt.Sprintf("Tool%d", turn)}})
	})
	t.Cleanup(func() { timer.Stop() })
}

// interruptAfter interrupts the run.
func (f *followed) interruptAfter(t *testing.T, after time.Duration) {
	t.Helper()
	f.context = func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(after, cancel)
		t.Cleanup(func() { timer.Stop(); cancel() })
		return ctx
	}
}

// TestFollowShowsEachEventOnceAndInOrder: whatever the socket does.
func TestFollowShowsEachEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode  omoiostest.SocketMode
		token string
	}{
		"frames": {"", omoiostest.Token}, "silence": {omoiostest.SocketSilent, omoiostest.Token}, "drop": {omoiostest.SocketDrops, omoiostest.Token},
		"garbage": {omoiostest.SocketGarbage, omoiostest.Token}, "1013": {omoiostest.SocketTryLater, omoiostest.Token},
		"404": {omoiostest.SocketAbsent, omoiostest.Token}, "4401": {"", "wrong"}, "no token": {"", ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			f := newFollowed(t, tc.mode, tc.token)
			const events = 40
			for i := range events {
				f.report(t, time.Duration(i*i)*300*time.Millisecond, i+1)
			}
			f.interruptAfter(t, 10*time.Minute)
			r := f.run(t, "events prod/aaaa -f --columns what")
			assert.Equal(t, 130, r.code, r.stderr)
			var want []string
			for i := range events {
				want = append(want, fmt.Sprintf("Tool%d", i+1))
			}
			got := strings.Fields(r.stdout)
			tools := got[:0]
			for _, word := range got {
				if strings.HasPrefix(word, "Tool") {
					tools = append(tools, word)
				}
			}
			assert.Equal(t, want, tools)
			assert.NotContains(t, r.stdout+r.stderr, omoiostest.Token)
		})
	}
}

// TestAFrameShortensTheWait: an event is shown when it was announced, and without a socket within 2 s.
func TestAFrameShortensTheWait(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode  omoiostest.SocketMode
		shown bool
	}{"frames": {"", true}, "no socket": {omoiostest.SocketAbsent, false}} {
		bubble.Run(t, name, func(t *testing.T) {
			f := newFollowed(t, tc.mode, omoiostest.Token)
			f.report(t, 400*time.Millisecond, 1) // before the first look
			f.report(t, 3*time.Second, 2)
			f.interruptAfter(t, 3100*time.Millisecond)
			r := f.run(t, "events prod/aaaa -f")
			assert.Contains(t, r.stdout, "Tool1")
			assert.Equal(t, tc.shown, strings.Contains(r.stdout, "Tool2"), r.stdout)
		})
	}
}

// TestFollowEndsWithTheSandbox: with its last events, and exit 0, as `logs -f`.
func TestFollowEndsWithTheSandbox(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "ended", func(t *testing.T) {
		f := newFollowed(t, "", omoiostest.Token)
		f.report(t, 29*time.Second, 1)
		timer := time.AfterFunc(29*time.Second, func() {
			f.prod.Change("aaaa", func(s *sandbox.Sandbox) { s.State = sandbox.StateTerminated })
		})
		defer timer.Stop()
		began := time.Now()
		r := f.run(t, "events prod/aaaa -f")
		assert.Equal(t, 0, r.code, r.stderr)
		assert.Contains(t, r.stdout, "Tool1")
		assert.Contains(t, r.stderr, "has ended")
		assert.Less(t, time.Since(began), 45*time.Second)
	})
}

// TestFollowOutlivesOneAnswerThatTheSandboxIsMissing: two reads, two seconds apart, end it, and none where the list
// still has it.
func TestFollowOutlivesOneAnswerThatTheSandboxIsMissing(t *testing.T) {
	t.Parallel()
	for kind, after := range map[fault.Kind]fake.After{fault.KindNotFound: fake.AfterMissing, fault.KindGone: fake.AfterGone} {
		for name, tc := range map[string]struct {
			mendAfter time.Duration // 0 = never
			ended     bool          // it does not exist any more
		}{"once": {2 * time.Second, false}, "for good": {0, true}, "still listed": {0, false}} {
			bubble.Run(t, string(kind)+" "+name, func(t *testing.T) {
				f := newFollowed(t, omoiostest.SocketAbsent, omoiostest.Token)
				f.prod = fake.New(fake.Options{Name: "prod", After: after})
				f.prod.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "aaaa", Name: agentBox, State: sandbox.StateRunning, CreatedAt: noon, StartedAt: noon}})
				f.members = []providers.Provider{f.prod}
				at := func(d time.Duration, do func()) {
					timer := time.AfterFunc(d, do)
					t.Cleanup(func() { timer.Stop() })
				}
				// The state is read after 500 ms, 10.5 s and 20.5 s.
				at(19900*time.Millisecond, func() {
					if tc.ended {
						assert.NoError(t, f.prod.Terminate(t.Context(), "aaaa", providers.TerminateOptions{Delete: true}))
						return
					}
					f.prod.Break(fake.Fault{Op: fake.OpGet, ID: "aaaa", Err: fault.New(kind, "no such sandbox")})
				})
				if tc.mendAfter > 0 {
					at(19900*time.Millisecond+tc.mendAfter, f.prod.Mend)
				}
				f.report(t, 14*time.Second, 1)
				at(40*time.Second, f.prod.Mend) // a source may need the record to find its own id
				f.report(t, 50*time.Second, 2)
				f.interruptAfter(t, time.Minute)
				began := time.Now()
				r := f.run(t, "events prod/aaaa -f")
				assert.Contains(t, r.stdout, "Tool1")
				assert.Equal(t, tc.ended, strings.Contains(r.stderr, "has ended"), r.stderr)
				assert.Equal(t, !tc.ended, strings.Contains(r.stdout, "Tool2"), r.stdout)
				assert.Equal(t, name == "still listed", strings.Contains(r.stderr, "proves no end: it is running"), r.stderr)
				if !tc.ended {
					assert.Equal(t, 130, r.code, r.stderr)
					return
				}
				assert.Equal(t, 0, r.code, r.stderr)
				assert.NotContains(t, r.stderr, "error")
				assert.NotContains(t, r.stderr, "warning")
				assert.GreaterOrEqual(t, time.Since(began), 22*time.Second, "the first read is confirmed")
				assert.Less(t, time.Since(began), 25*time.Second)
			})
		}
	}
}

// TestASourceThatRefusesSlowsNoOther: it is warned of once, asked less and less often, and heard when it answers again.
func TestASourceThatRefusesSlowsNoOther(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.KindNotFound, fault.KindGone, fault.KindAuth} {
		bubble.Run(t, string(kind), func(t *testing.T) {
			f := newFollowed(t, omoiostest.SocketAbsent, omoiostest.Token)
			f.prod.Break(fake.Fault{Op: fake.OpEvents, Err: fault.New(kind, "refused for good")})
			began, shown := time.Now(), map[int]time.Duration{}
			f.printed = func(text string) {
				for i := range 10 {
					if strings.Contains(text, fmt.Sprintf("Tool%d\n", i)) {
						shown[i] = time.Since(began)
					}
				}
			}
			for i := range 10 {
				f.report(t, time.Duration(i)*time.Minute+700*time.Millisecond, i)
			}
			f.interruptAfter(t, 10*time.Minute)
			r := f.run(t, "events prod/aaaa -f --columns what")
			for i := range 10 {
				if assert.Contains(t, shown, i) {
					assert.LessOrEqual(t, shown[i]-time.Duration(i)*time.Minute, 3*time.Second, "Tool%d", i)
				}
			}
			assert.LessOrEqual(t, strings.Count(r.stderr, "refused for good"), 2, r.stderr) // of the first read, and of the following
			assert.Less(t, len(f.prod.Calls(fake.OpEvents)), 40)
		})
	}
}

// TestFollowShowsAnEventWithinASecond of its report, also the first one, by virtual time.
func TestFollowShowsAnEventWithinASecond(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]omoiostest.SocketMode{"frames": "", "no socket": omoiostest.SocketAbsent} {
		bubble.Run(t, name, func(t *testing.T) {
			f := newFollowed(t, mode, omoiostest.Token)
			const events = 40
			began, shown := time.Now(), map[int]time.Duration{}
			f.printed = func(text string) {
				for i := range events {
					if strings.Contains(text, fmt.Sprintf(" Tool%d\n", i)) || strings.Contains(text, fmt.Sprintf("\tTool%d\n", i)) {
						shown[i] = time.Since(began)
					}
				}
			}
			due := func(i int) time.Duration { return time.Duration(1+i*1130) * time.Millisecond } // at each phase of a second
			for i := range events {
				f.report(t, due(i), i)
			}
			f.interruptAfter(t, time.Minute)
			f.run(t, "events prod/aaaa -f")
			for i := range events {
				if assert.Contains(t, shown, i) {
					assert.LessOrEqual(t, shown[i]-due(i), time.Second, "Tool%d", i)
				}
			}
		})
	}
}
