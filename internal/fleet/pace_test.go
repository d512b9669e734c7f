package fleet_test

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// crowd is a provider with n sandboxes, where every call takes 20 ms and an end
// 200 ms, and the targets that they are.
func crowd(n int) (*fake.Provider, []sandbox.Sandbox) {
	p := fake.New(fake.Options{Name: "prod", Latency: 20 * time.Millisecond, EndFor: 200 * time.Millisecond, After: fake.AfterMissing})
	var targets []sandbox.Sandbox
	for i := range n {
		id := fmt.Sprintf("box%04d", i)
		p.Add(box(id, ""))
		targets = append(targets, sandbox.Sandbox{Provider: "prod", ID: id, State: sandbox.StateRunning})
	}
	return p, targets
}

// bulk ends as cleanup does: the log is kept, the sandbox read again, then asked.
func bulk(f *fleet.Fleet) fleet.EndOptions {
	return fleet.EndOptions{Recheck: fleet.Recheck{Prepare: func(ctx context.Context, s sandbox.Sandbox) { f.Tail(ctx, s.Ref(), 50) }}}
}

// TestAHundredEndingsKeepTheirBudget is the arithmetic of the time budget, in
// virtual time: 300 requests before the last is asked, and no slot idle.
func TestAHundredEndingsKeepTheirBudget(t *testing.T) {
	t.Parallel()
	for slots, most := range map[int]time.Duration{0: 750 * time.Millisecond, 1: 9 * time.Second, 4: 2500 * time.Millisecond, 16: 750 * time.Millisecond, 32: 500 * time.Millisecond} {
		bubble.Run(t, strconv.Itoa(slots), func(t *testing.T) {
			p, targets := crowd(100)
			f := with(fleet.Options{Slots: slots}, p)
			began := time.Now()
			assert.Equal(t, fleet.Counts{Selected: 100, Verified: 100}, fleet.Count(endThese(t.Context(), f, bulk(f), targets...)))
			assert.LessOrEqual(t, time.Since(began), most)
			assert.GreaterOrEqual(t, time.Since(began), 375*time.Millisecond, "four calls each cannot be faster")
			assert.LessOrEqual(t, p.Peak(), cmp.Or(slots, fleet.DefaultSlots), "reads of logs count too")
			assert.LessOrEqual(t, len(p.Calls(fake.OpGet)), 350, "looks that come too early are few")
		})
	}
}

// asker records the arguments of Terminate.
type asker struct {
	*fake.Provider

	mu   sync.Mutex
	told []*sandbox.Sandbox
}

func (a *asker) Terminate(ctx context.Context, id string, o providers.TerminateOptions) error {
	a.mu.Lock()
	a.told = append(a.told, o.Seen)
	a.mu.Unlock()
	return a.Provider.Terminate(ctx, id, o)
}

func TestAProviderGoesOnlyByWhatWasReadJustNow(t *testing.T) {
	t.Parallel()
	slow := func(context.Context, sandbox.Sandbox, bool) error {
		timer := time.NewTimer(time.Second) // a disk that takes its time
		defer timer.Stop()
		<-timer.C
		return nil
	}
	for name, tc := range map[string]struct {
		how  fleet.EndOptions
		told bool
	}{
		"read just before": {fleet.EndOptions{}, true},
		"not read":         {fleet.EndOptions{Recheck: unread()}, false},
		"read long before": {fleet.EndOptions{Before: slow}, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a := &asker{Provider: stocked("prod", "a")}
			endThese(t.Context(), with(fleet.Options{}, a), tc.how, sandbox.Sandbox{Provider: "prod", ID: "a", Name: "old"})
			require.Len(t, a.told, 1)
			require.Equal(t, tc.told, a.told[0] != nil)
			if tc.told {
				assert.Equal(t, sandbox.StateRunning, a.told[0].State)
				assert.Empty(t, a.told[0].Name, "it is the fresh record, not the caller's")
			}
		})
	}
}

func TestWhatIsKeptIsReadBeforeTheLastLook(t *testing.T) {
	t.Parallel()
	p := stocked("prod", "a")
	how := fleet.EndOptions{Recheck: fleet.Recheck{Prepare: func(context.Context, sandbox.Sandbox) {
		assert.Empty(t, p.Calls(fake.OpGet))
	}}}
	got := endThese(t.Context(), of(p), how, sandbox.Sandbox{Provider: "prod", ID: "a"})
	require.Len(t, got, 1)
	assert.Equal(t, sandbox.OutcomeVerified, got[0].Outcome)

	ctx, cancel := context.WithCancel(t.Context())
	p = stocked("prod", "a")
	how.Recheck.Prepare = func(context.Context, sandbox.Sandbox) { cancel() }
	got = endThese(ctx, of(p), how, sandbox.Sandbox{Provider: "prod", ID: "a"})
	require.Len(t, got, 1)
	assert.Equal(t, sandbox.OutcomeNotAttempted, got[0].Outcome)
	assert.Empty(t, p.Calls(fake.OpTerminate))
}

// BenchmarkTerminate100 is what the fleet itself costs for a hundred endings that
// take no time.
func BenchmarkTerminate100(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		p := fake.New(fake.Options{Name: "prod", After: fake.AfterMissing})
		var targets []sandbox.Sandbox
		for i := range 100 {
			id := fmt.Sprintf("box%04d", i)
			p.Add(box(id, ""))
			targets = append(targets, sandbox.Sandbox{Provider: "prod", ID: id, State: sandbox.StateRunning})
		}
		f := with(fleet.Options{}, p)
		b.StartTimer()
		for range f.Terminate(b.Context(), targets, bulk(f)) {
			continue
		}
	}
}
