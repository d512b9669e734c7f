package fleet_test

import (
	"context"
	"sync"
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
)

func limited(p *fake.Provider, most int) *fleet.Fleet {
	return fleet.New([]fleet.Member{{Provider: p, MaxSandboxes: most}}, fleet.Options{})
}

func inState(id string, state sandbox.State) fake.Seed {
	return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, State: state, CreatedAt: time.Now()}}
}

// TestNoMoreThanTheLimitAreMade: nothing is sent that would exceed it.
func TestNoMoreThanTheLimitAreMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(inState("box-0001", sandbox.StateRunning), inState("box-0002", sandbox.StateProvisioning), inState("box-0003", sandbox.StatePaused), inState("box-0004", sandbox.StateTerminated))
		f := limited(p, 3)
		require.NoError(t, f.Capacity(t.Context(), "prod"))
		_, err := f.Create(t.Context(), "prod", sandbox.Spec{Command: []string{"true"}})
		require.NoError(t, err, "two of three run")
		_, err = f.Create(t.Context(), "prod", sandbox.Spec{Command: []string{"true"}})
		require.Error(t, err)
		assert.Equal(t, fault.KindRefused, fault.KindOf(err))
		assert.Contains(t, err.Error(), "maximum sandbox limit reached: 3 of 3 run; nothing was created")
		assert.Contains(t, fault.HintOf(err), "`sbx ls --provider prod --sort -age`")
		require.ErrorIs(t, err, providers.ErrSandboxLimit)
		require.ErrorIs(t, err, providers.ErrNothingMade)
		assert.Equal(t, fault.KindRefused, fault.KindOf(f.Capacity(t.Context(), "prod")))
		assert.Len(t, p.Calls(fake.OpCreate), 1)
	})
}

// TestCreatesAtOnceSeeEachOther: the limit holds however many ask.
func TestCreatesAtOnceSeeEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		f := limited(p, 4)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { _, _ = f.Create(t.Context(), "prod", sandbox.Spec{Command: []string{"true"}}) })
		}
		all.Wait()
		assert.Len(t, p.Calls(fake.OpCreate), 4)
	})
}

// TestWhatCannotBeCountedIsNotExceeded.
func TestWhatCannotBeCountedIsNotExceeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
		_, err := limited(p, 4).Create(t.Context(), "prod", sandbox.Spec{Command: []string{"true"}})
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
		require.ErrorIs(t, err, providers.ErrNothingMade)
		assert.Empty(t, p.Calls(fake.OpCreate))
		_, err = limited(p, 0).Create(t.Context(), "prod", sandbox.Spec{Command: []string{"true"}})
		require.NoError(t, err, "without a limit nothing is counted")
	})
}

// TestTheLimitIsAQuota, also where the provider reports none.
func TestTheLimitIsAQuota(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bare := fake.New(fake.Options{Name: "bare"})
		bare.Add(inState("box-0001", sandbox.StateRunning), inState("box-0002", sandbox.StatePaused))
		mute := fake.New(fake.Options{Name: "mute"})
		mute.Break(fake.Fault{Op: fake.OpQuota, Err: fault.New(fault.KindUnsupported, "older domains do not tell")})
		broken := fake.New(fake.Options{Name: "broken"})
		broken.Break(fake.Fault{Op: fake.OpQuota, Err: fault.New(fault.KindAuth, "403")})
		f := fleet.New([]fleet.Member{{Provider: bare.Bare(), MaxSandboxes: 4}, {Provider: mute, MaxSandboxes: 4}, {Provider: broken, MaxSandboxes: 4}, {Provider: fake.New(fake.Options{Name: "none"}).Bare()}}, fleet.Options{})
		got := f.Quotas(t.Context())
		require.Len(t, got, 3, "one that tells nothing, and of which nobody has said anything, is left out")
		require.NoError(t, got[0].Err)
		require.Len(t, got[0].Quotas, 1)
		assert.InDelta(t, 1, *got[0].Quotas[0].Used, 0)
		assert.InDelta(t, 4, *got[0].Quotas[0].Limit, 0)
		require.NoError(t, got[1].Err)
		assert.Len(t, got[1].Quotas, 1)
		assert.Equal(t, fault.KindAuth, fault.KindOf(got[2].Err), "a quota that fails is not replaced")
	})
}

// TestACountHoldsUpNobodyForEver: waiting for another count can be interrupted, and a create
// that was answered waits for none.
func TestACountHoldsUpNobodyForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		f := limited(p, 9)
		p.Break(fake.Fault{Op: fake.OpList, Hang: true})
		counting, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { assert.Error(t, f.Capacity(counting, "prod")) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := f.Create(ctx, "prod", sandbox.Spec{Command: []string{"true"}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(began))
		stop()
		all.Wait()
	})
}
