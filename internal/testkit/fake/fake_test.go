package fake_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/providertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Config{
		New: func(providertest.T) providers.Provider {
			return fake.New(fake.Options{PageSize: 2, EndFor: 3 * time.Millisecond})
		},
		Many: 5, Simulated: true,
	})
}

func state(t *testing.T, p providers.Provider, id string) sandbox.State {
	t.Helper()
	s, err := p.Get(t.Context(), id)
	require.NoError(t, err)
	return s.State
}

func TestLifeByTheClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{ProvisionFor: 2 * time.Second, EndFor: 3 * time.Second})
		made, err := p.Create(t.Context(), sandbox.Spec{Name: "a"})
		require.NoError(t, err)
		assert.Equal(t, sandbox.StateProvisioning, made.State)
		assert.True(t, made.StartedAt.IsZero())

		advance(t, 2*time.Second)
		assert.Equal(t, sandbox.StateRunning, state(t, p, made.ID))
		require.NoError(t, p.Terminate(t.Context(), made.ID, providers.TerminateOptions{By: "test"}))
		assert.Equal(t, sandbox.StateTerminating, state(t, p, made.ID))
		require.NoError(t, p.Terminate(t.Context(), made.ID, providers.TerminateOptions{}), "what is ending may be asked again")

		advance(t, 3*time.Second)
		got, err := p.Get(t.Context(), made.ID)
		require.NoError(t, err)
		assert.Equal(t, sandbox.StateTerminated, got.State)
		assert.Equal(t, sandbox.ClassKilledByUs, got.Exit.Class)
		assert.Equal(t, 3*time.Second, got.EndedAt.Sub(made.CreatedAt)-2*time.Second, "the second request does not start the clock anew")
	})
}

// advance lets virtual time pass.
func advance(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func TestProgramsEndByThemselves(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spec  sandbox.Spec
		after time.Duration
		state sandbox.State
		code  int
	}{
		"well":        {sandbox.Spec{Command: []string{"sleep", "2"}}, 2 * time.Second, sandbox.StateTerminated, 0},
		"with a code": {sandbox.Spec{Command: []string{"sh", "-c", "sleep 1; exit 3"}}, time.Second, sandbox.StateFailed, 3},
		"not found":   {sandbox.Spec{Command: []string{"sh", "-c", "nonsense"}}, 0, sandbox.StateFailed, 127},
		"at its TTL":  {sandbox.Spec{TTL: time.Minute}, time.Minute, sandbox.StateFailed, 137},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{})
			made, err := p.Create(t.Context(), tc.spec)
			require.NoError(t, err)
			if tc.after > 0 {
				advance(t, tc.after-1)
				assert.Equal(t, sandbox.StateRunning, state(t, p, made.ID))
				advance(t, 1)
			}
			got, err := p.Get(t.Context(), made.ID)
			require.NoError(t, err)
			assert.Equal(t, tc.state, got.State)
			require.NotNil(t, got.Exit)
			assert.Equal(t, tc.code, *got.Exit.Code)
		})
	}
}

func TestWhatRemainsAfterTheEnd(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		after  fake.After
		delete bool
		want   fault.Kind
	}{
		"kept":             {fake.AfterKept, false, fault.KindNone},
		"kept but deleted": {fake.AfterKept, true, fault.KindNotFound},
		"gone":             {fake.AfterGone, false, fault.KindGone},
		"gone and deleted": {fake.AfterGone, true, fault.KindGone},
		"missing":          {fake.AfterMissing, false, fault.KindNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fake.New(fake.Options{After: tc.after})
			id := p.Add(fake.Seed{})[0]
			require.NoError(t, p.Terminate(t.Context(), id, providers.TerminateOptions{Delete: tc.delete}))
			_, err := p.Get(t.Context(), id)
			assert.Equal(t, tc.want, fault.KindOf(err), "%v", err)
		})
	}
}

func TestSeedsKeepTheirTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := fake.New(fake.Options{Now: func() time.Time { return now }})
	ids := p.Add(
		fake.Seed{},
		fake.Seed{Sandbox: sandbox.Sandbox{ID: "later", CreatedAt: now.Add(time.Hour)}},
		fake.Seed{Sandbox: sandbox.Sandbox{ID: "stuck", State: sandbox.StateProvisioning, CreatedAt: now.Add(-time.Hour)}},
	)
	for i, want := range []sandbox.AgeSource{sandbox.AgeUnknown, sandbox.AgeUnknown, sandbox.AgeCreatedAt} {
		got, err := p.Get(t.Context(), ids[i])
		require.NoError(t, err)
		_, source := got.Age(now)
		assert.Equal(t, want, source, ids[i])
	}
	assert.Equal(t, sandbox.StateProvisioning, state(t, p, "stuck"))
	assert.True(t, p.Change("stuck", func(s *sandbox.Sandbox) { s.State = sandbox.StateRunning }))
	assert.Equal(t, sandbox.StateRunning, state(t, p, "stuck"))
	assert.False(t, p.Change("nobody", func(*sandbox.Sandbox) {}))
	assert.False(t, p.Write("nobody"))
}

func TestSweepEndsLeftovers(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "local"})
	p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "lost"}, Leftover: true}, fake.Seed{Sandbox: sandbox.Sandbox{ID: "fine"}})
	swept, err := p.Sweep(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []sandbox.Ref{{Provider: "local", ID: "lost"}}, swept.Refs)
	got, err := p.Get(t.Context(), "lost")
	require.NoError(t, err)
	assert.Equal(t, sandbox.StateFailed, got.State)
	assert.Equal(t, sandbox.CauseSupervisorLost, got.Exit.Cause)
	again, err := p.Sweep(t.Context())
	require.NoError(t, err)
	assert.Empty(t, again.Refs)
}

func TestOnlyHidesAbilities(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{})
	for _, a := range providers.Abilities() {
		assert.True(t, a.Has(p), "the fake has %s", a.Name)
		assert.False(t, a.Has(p.Bare()), "bare has no %s", a.Name)
		for _, b := range providers.Abilities() {
			assert.Equal(t, a.Name == b.Name, b.Has(p.Only(a.Name)), "only %s: %s", a.Name, b.Name)
		}
	}
	assert.Equal(t, p.Name(), p.Only("nothing").Name())
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{PageSize: 3})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	for range 8 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 50 {
				made, err := p.Create(ctx, sandbox.Spec{})
				assert.NoError(t, err)
				for _, err := range p.List(ctx, providers.Query{}) {
					assert.NoError(t, err)
				}
				assert.NoError(t, p.Terminate(ctx, made.ID, providers.TerminateOptions{Delete: true}))
			}
		}()
	}
	for range 8 {
		<-done
	}
	cancel()
	stats, err := p.Stats(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(400), *stats.TotalCreated)
	assert.Equal(t, int64(400), *stats.TotalDestroyed)
	assert.LessOrEqual(t, p.Peak(), 8)
}
