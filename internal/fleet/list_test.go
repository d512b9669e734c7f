package fleet_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

func TestListMergesInArrivalOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, fast := stocked("slow", "s1", "s2"), stocked("fast", "f1", "f2", "f3")
		slow.Break(fake.Fault{Op: fake.OpList, Page: 1, Delay: 5 * time.Second})
		began := time.Now()
		var got []string
		var at []time.Duration
		for s, err := range of(slow, fast).List(t.Context(), providers.Query{}) {
			require.NoError(t, err)
			got, at = append(got, s.Ref().String()), append(at, time.Since(began))
		}
		assert.Equal(t, []string{"fast/f1", "fast/f2", "fast/f3", "slow/s1", "slow/s2"}, got)
		assert.Zero(t, at[0], "a fast provider does not wait for a slow one")
		assert.Equal(t, 5*time.Second, at[4])
	})
}

func TestOneProviderFailsAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  fake.Fault
		items  int
		kind   fault.Kind
		took   time.Duration
		detail string
	}{
		"at once":      {fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindAuth, "bad token")}, 3, fault.KindAuth, 0, "bad: list: bad token"},
		"on page two":  {fake.Fault{Op: fake.OpList, Page: 2, Err: fault.New(fault.KindUnavailable, "503")}, 5, fault.KindUnavailable, 0, "bad: list: 503"},
		"by hanging":   {fake.Fault{Op: fake.OpList, Hang: true}, 3, fault.KindUnavailable, 20 * time.Second, "bad: list: no answer within 20s"},
		"by a hang p2": {fake.Fault{Op: fake.OpList, Page: 2, Hang: true}, 5, fault.KindUnavailable, 20 * time.Second, "bad: list: no answer within 20s"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			bad := stocked("bad", "b1", "b2", "b3")
			bad.Break(tc.fault)
			began := time.Now()
			l := of(bad, stocked("good", "g1", "g2", "g3")).Collect(t.Context(), providers.Query{})
			assert.Len(t, l.Items, tc.items)
			assert.False(t, l.Complete())
			require.Len(t, l.Errors, 1)
			assert.Equal(t, tc.kind, fault.KindOf(l.Err()))
			require.EqualError(t, l.Errors[0], tc.detail)
			assert.Equal(t, tc.took, time.Since(began), "a hung provider costs its own deadline and nothing else")
		})
	}
}

func TestSlowPagesAreProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := stocked("slow", "a", "b", "c", "d", "e", "f")
		p.Break(fake.Fault{Op: fake.OpList, Delay: 15 * time.Second})
		l := of(p).Collect(t.Context(), providers.Query{})
		require.NoError(t, l.Err(), "45 s in all, but never 20 s without a page")
		assert.Len(t, l.Items, 6)
	})
}

func TestASlowConsumerIsNotTheProvidersFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{PageSize: 50})
		p.Add(make([]fake.Seed, 300)...)
		n := 0
		for _, err := range of(p).List(t.Context(), providers.Query{}) {
			require.NoError(t, err)
			if n++; n == 1 {
				advance(t, time.Hour) // the readers are held up by a full queue
			}
		}
		assert.Equal(t, 300, n)
	})
}

func TestABreakStopsEveryProviderBeforeItReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hung, many := stocked("hung", "h1"), fake.New(fake.Options{Name: "many", PageSize: 1, Latency: time.Second})
		hung.Break(fake.Fault{Op: fake.OpList, Hang: true})
		many.Add(make([]fake.Seed, 100)...)
		began := time.Now()
		for _, err := range of(hung, many).List(t.Context(), providers.Query{}) {
			require.NoError(t, err)
			break
		}
		assert.Equal(t, time.Second, time.Since(began), "nobody waits for the hung one")
		pages := len(many.Calls(fake.OpList))
		advance(t, time.Minute)
		assert.Len(t, many.Calls(fake.OpList), pages, "nothing is read any more")
	}) // a goroutine left behind would fail the bubble
}

func TestTheEndOfCtxIsTold(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]fault.Kind{"canceled": fault.KindCanceled, "deadline": fault.KindTimeout} {
		bubble.Run(t, name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if kind == fault.KindCanceled {
				ctx, cancel = context.WithCancel(t.Context())
				time.AfterFunc(3*time.Second, cancel)
			}
			a, b := stocked("a", "a1"), stocked("b", "b1")
			a.Break(fake.Fault{Op: fake.OpList, Hang: true})
			b.Break(fake.Fault{Op: fake.OpList, Hang: true})
			l := of(a, b).Collect(ctx, providers.Query{})
			assert.Len(t, l.Errors, 2, "each provider says that it was cut short")
			assert.Equal(t, kind, fault.KindOf(l.Err()), "%v", l.Err())
		})
	}
}

// mute is a provider whose listing ends in silence when ctx ends, which the
// contract forbids.
type mute struct{ *fake.Provider }

func (m mute) List(ctx context.Context, _ providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	return func(func(sandbox.Sandbox, error) bool) { <-ctx.Done() }
}

func TestASilentEndIsNotTheWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := of(mute{stocked("mute")}).Collect(t.Context(), providers.Query{})
		assert.False(t, l.Complete(), "what timed out has not told everything")
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(l.Err()))
	})
}

func TestAnEmptyFleetIsComplete(t *testing.T) {
	t.Parallel()
	l := of().Collect(t.Context(), providers.Query{})
	assert.True(t, l.Complete())
	assert.Empty(t, l.Items)
}

// BenchmarkList merges 10,000 sandboxes of five providers.
func BenchmarkList(b *testing.B) {
	var members []providers.Provider
	for i := range 5 {
		p := fake.New(fake.Options{Name: fmt.Sprintf("p%d", i)})
		p.Add(make([]fake.Seed, 2000)...)
		members = append(members, p)
	}
	f := with(fleet.Options{}, members...)
	for b.Loop() {
		n := 0
		for _, err := range f.List(b.Context(), providers.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10_000 {
			b.Fatalf("%d listed", n)
		}
	}
}
