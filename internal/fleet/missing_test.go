package fleet_test

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

// listing is a provider whose list has more than its sandboxes.
type listing struct {
	*fake.Provider

	more  []sandbox.Sandbox
	lists atomic.Int64
}

func (l *listing) List(ctx context.Context, q providers.Query) iter.Seq2[sandbox.Sandbox, error] {
	l.lists.Add(1)
	return func(yield func(sandbox.Sandbox, error) bool) {
		for s, err := range l.Provider.List(ctx, q) {
			if !yield(s, err) {
				return
			}
		}
		for _, s := range l.more {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// TestAGhostIsListedAndDoesNotExist (R94), and one that has ended since the listing is none. Many of
// them cost few listings.
func TestAGhostIsListedAndDoesNotExist(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := time.Now().Add(-time.Hour)
		row := func(id string) sandbox.Sandbox {
			return sandbox.Sandbox{Provider: "prod", ID: id, State: sandbox.StateRunning, CreatedAt: made, StartedAt: made}
		}
		p := &listing{Provider: fake.New(fake.Options{Name: "prod", Latency: 10 * time.Millisecond}), more: []sandbox.Sandbox{row("ghost001")}}
		f := of(p)
		th := triage.DefaultThresholds()

		o := f.Observe(t.Context(), row("ghost001"))
		v := o.Judge(th, time.Now())
		assert.True(t, o.IsGhost())
		assert.Equal(t, sandbox.CauseGhost, v.Cause)
		assert.Equal(t, sandbox.True, v.Stuck)

		o = f.Observe(t.Context(), row("ended001"))
		assert.False(t, o.IsGhost())
		assert.Equal(t, sandbox.StateTerminated, o.Sandbox.State)
		assert.Equal(t, sandbox.False, o.Judge(th, time.Now()).Stuck)

		p.lists.Store(0)
		items := make([]sandbox.Sandbox, 100)
		for i := range items {
			items[i] = row("ghost001")
		}
		var mu sync.Mutex
		ghosts := 0
		how := fleet.Looking{Thresholds: func(sandbox.Sandbox) triage.Thresholds { return th }}
		f.Look(t.Context(), items, how, func(_ int, o fleet.Observation) {
			mu.Lock()
			defer mu.Unlock()
			if o.IsGhost() {
				ghosts++
			}
		})
		assert.Equal(t, 100, ghosts)
		assert.Less(t, p.lists.Load(), int64(20), "they share listings")

		p.Break(fake.Fault{Op: fake.OpList, Err: context.DeadlineExceeded})
		o = f.Observe(t.Context(), row("ghost001"))
		require.False(t, o.IsGhost(), "without the second listing nothing is proved")
		assert.Equal(t, sandbox.StateRunning, o.Sandbox.State)
	})
}

// blind is a provider that has its sandboxes and cannot read their usage and output: its server
// lacks those routes.
type blind struct{ *fake.Provider }

func (b blind) Usage(context.Context, string) (sandbox.Usage, error) {
	return sandbox.Usage{}, fault.New(fault.KindNotFound, "404 page not found")
}

func (b blind) Logs(context.Context, string, providers.LogQuery) iter.Seq2[sandbox.LogLine, error] {
	return func(yield func(sandbox.LogLine, error) bool) {
		yield(sandbox.LogLine{}, fault.New(fault.KindNotFound, "404 page not found"))
	}
}

// TestASandboxThatItsProviderHasIsNoGhost, whatever its optional reads answer: cleanup would
// terminate it. One that is paused by the second listing is paused.
func TestASandboxThatItsProviderHasIsNoGhost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := time.Now().Add(-time.Hour)
		box := sandbox.Sandbox{Provider: "prod", ID: "alive001", State: sandbox.StateRunning, CreatedAt: made, StartedAt: made}
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(fake.Seed{Sandbox: box})
		o := of(blind{p}).Observe(t.Context(), box)
		assert.False(t, o.IsGhost())
		assert.Equal(t, sandbox.StateRunning, o.Sandbox.State)
		assert.NotEqual(t, sandbox.True, o.Judge(triage.DefaultThresholds(), time.Now()).Stuck)

		paused := box
		paused.ID, paused.State = "paused01", sandbox.StatePaused
		l := &listing{Provider: fake.New(fake.Options{Name: "prod"}), more: []sandbox.Sandbox{paused}}
		seen := paused
		seen.State = sandbox.StateRunning
		o = of(l).Observe(t.Context(), seen)
		assert.False(t, o.IsGhost())
		assert.Equal(t, sandbox.StatePaused, o.Sandbox.State)
	})
}
