package fleet_test

import (
	"bytes"
	"context"
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

// verbs is every call of the fleet about one sandbox.
func verbs(f *fleet.Fleet, ref sandbox.Ref) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"get": func(ctx context.Context) error { _, err := f.Get(ctx, ref); return err },
		"logs": func(ctx context.Context) error {
			for _, err := range f.Logs(ctx, ref, providers.LogQuery{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"usage":  func(ctx context.Context) error { _, err := f.Usage(ctx, ref); return err },
		"probe":  func(ctx context.Context) error { _, err := f.Probe(ctx, ref); return err },
		"events": func(ctx context.Context) error { _, err := f.Events(ctx, ref); return err },
		"exec": func(ctx context.Context) error {
			_, err := f.Exec(ctx, ref, providers.Command{Args: []string{"true"}})
			return err
		},
		"create": func(ctx context.Context) error { _, err := f.Create(ctx, ref.Provider, sandbox.Spec{}); return err },
	}
}

func TestVerbsReachTheirProvider(t *testing.T) {
	t.Parallel()
	p, other := stocked("prod", "abcd"), stocked("other")
	for name, verb := range verbs(of(other, p), sandbox.Ref{Provider: "prod", ID: "abcd"}) {
		require.NoError(t, verb(t.Context()), name)
		assert.Len(t, p.Calls(fake.Op(name)), 1, name)
	}
	assert.Empty(t, other.Calls())
}

func TestVerbsOfAnUnknownProfileAreUsage(t *testing.T) {
	t.Parallel()
	for name, verb := range verbs(of(stocked("prod")), sandbox.Ref{Provider: "prdo", ID: "abcd"}) {
		err := verb(t.Context())
		assert.Equal(t, fault.KindUsage, fault.KindOf(err), name)
		assert.Contains(t, fault.HintOf(err), "did you mean prod?", name)
	}
}

func TestMissingAbilitiesNameWhoHasThem(t *testing.T) {
	t.Parallel()
	f := of(fake.New(fake.Options{Name: "bare", Type: "omoios"}).Bare(), stocked("full", "abcd"))
	for name, verb := range verbs(f, sandbox.Ref{Provider: "bare", ID: "abcd"}) {
		err := verb(t.Context())
		if name == "get" {
			assert.Equal(t, fault.KindNotFound, fault.KindOf(err))
			continue
		}
		assert.Equal(t, fault.KindUnsupported, fault.KindOf(err), name)
		require.ErrorContains(t, err, "bare: a provider of type omoios has no "+name)
		assert.Equal(t, "these configured providers have it: full", fault.HintOf(err))
	}
}

func TestVerbsGiveUpASilentProvider(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"get", "logs", "usage", "probe", "events"} {
		bubble.Run(t, name, func(t *testing.T) {
			p := stocked("prod", "abcd")
			p.Break(fake.Fault{Op: fake.Op(name), Hang: true})
			f := fleet.New([]fleet.Member{{Provider: p, Timeout: 3 * time.Second}}, fleet.Options{})
			began := time.Now()
			err := verbs(f, sandbox.Ref{Provider: "prod", ID: "abcd"})[name](t.Context())
			assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
			require.EqualError(t, err, "prod: "+name+" abcd: no answer within 3s")
			assert.Equal(t, 3*time.Second, time.Since(began))
		})
	}
}

func TestWaitingForASlotIsNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", Latency: 15 * time.Second})
		p.Add(box("abcd", ""))
		f := with(fleet.Options{Slots: 1}, p)
		done := make(chan error)
		for range 3 {
			go func() {
				_, err := f.Get(t.Context(), sandbox.Ref{Provider: "prod", ID: "abcd"})
				done <- err
			}()
		}
		for range 3 {
			require.NoError(t, <-done)
		}
		assert.Equal(t, 1, p.Peak())
	})
}

func TestFollowingMayBeSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		made, err := p.Create(t.Context(), sandbox.Spec{Command: []string{"sh", "-c", "echo a; sleep 3600; echo b"}})
		require.NoError(t, err)
		var got []string
		for line, err := range of(p).Logs(t.Context(), made.Ref(), providers.LogQuery{Follow: true}) {
			require.NoError(t, err)
			got = append(got, line.Text)
		}
		assert.Equal(t, []string{"a", "b"}, got)
		p.Break(fake.Fault{Op: fake.OpLogs, Err: planted(fault.KindAuth)})
		for _, err := range of(p).Logs(t.Context(), made.Ref(), providers.LogQuery{Follow: true}) {
			assert.Equal(t, fault.KindAuth, fault.KindOf(err))
		}
	})
}

func TestForeignErrorsGetAProvider(t *testing.T) {
	t.Parallel()
	p := stocked("prod", "abcd")
	_, err := of(foreign{p}).Get(t.Context(), sandbox.Ref{Provider: "prod", ID: "abcd"})
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	assert.Equal(t, "prod", f.Provider)
	assert.Equal(t, fault.KindUnknown, f.Kind)
	require.ErrorIs(t, err, bytes.ErrTooLarge)
}

// foreign is a provider whose errors are not faults.
type foreign struct{ *fake.Provider }

func (foreign) Get(context.Context, string) (sandbox.Sandbox, error) {
	return sandbox.Sandbox{}, bytes.ErrTooLarge
}

func TestChecksComeFromAllAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bad := fake.New(fake.Options{Name: "bad", Checks: []providers.Check{{Check: "token", Verdict: sandbox.False, Message: "expired"}}})
		got := of(stocked("good"), fake.New(fake.Options{}).Bare(), bad, sleeper{stocked("hung")}).Checks(t.Context())
		require.Len(t, got, 3)
		assert.Equal(t, "good", got[0].Provider)
		assert.Equal(t, fleet.ProviderCheck{Provider: "bad", ProviderType: "fake", Check: providers.Check{Check: "token", Verdict: sandbox.False, Message: "expired"}}, got[1])
		assert.Equal(t, sandbox.Unknown, got[2].Verdict)
		assert.Equal(t, "hung: doctor: no answer within 20s", got[2].Message)
	})
}

// sleeper is a provider whose doctor does not come.
type sleeper struct{ *fake.Provider }

func (sleeper) Check(ctx context.Context) []providers.Check {
	<-ctx.Done()
	return nil
}

func TestStats(t *testing.T) {
	t.Parallel()
	seeds := []fake.Seed{
		{},
		{Sandbox: sandbox.Sandbox{State: sandbox.StateProvisioning}},
		{Sandbox: sandbox.Sandbox{State: sandbox.StateTerminating}},
		{Sandbox: sandbox.Sandbox{State: sandbox.StateTerminated, EndedAt: time.Now().Add(-time.Minute)}},
	}
	stock := func(name string) *fake.Provider {
		p := fake.New(fake.Options{Name: name, PageSize: 2})
		p.Add(seeds...)
		return p
	}
	broken, blind := stock("broken"), stock("blind")
	for _, p := range []*fake.Provider{broken, blind} {
		p.Break(fake.Fault{Op: fake.OpList, Page: 2, Err: planted(fault.KindUnavailable)})
	}
	got := of(stock("own"), stock("counted").Bare(), broken.Bare(), blind).Stats(t.Context())
	require.Len(t, got, 4)

	own, counted, none, half := got[0], got[1], got[2], got[3]
	assert.Equal(t, int64(4), *own.Stats.TotalCreated)
	assert.Len(t, own.Items, 4)

	require.NoError(t, counted.Err)
	assert.Equal(t, int64(1), *counted.Stats.Active)
	assert.Equal(t, int64(1), *counted.Stats.Provisioning)
	assert.Equal(t, int64(1), *counted.Stats.Terminating)
	assert.Nil(t, counted.Stats.TotalCreated, "a listing does not know how many there ever were")

	assert.Equal(t, fault.KindUnavailable, fault.KindOf(none.Err), "no figures from half a listing")
	assert.Equal(t, providers.Stats{}, none.Stats)
	assert.Nil(t, none.Items)

	require.NoError(t, half.Err, "its own counters do not need the listing")
	assert.Equal(t, int64(1), *half.Stats.Active)
	require.Error(t, half.ItemsErr)
	assert.Nil(t, half.Items)
}

func TestSweepGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	bad, good := stocked("bad"), stocked("good")
	bad.Break(fake.Fault{Op: fake.OpSweep, Err: planted(fault.KindLocked)})
	good.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "lost"}, Leftover: true})
	swept, err := of(bad, stocked("none"), good).Sweep(t.Context())
	assert.Equal(t, fault.KindLocked, fault.KindOf(err))
	assert.Equal(t, []sandbox.Ref{{Provider: "good", ID: "lost"}}, swept.Refs)
}

func TestCreateIsSentOnce(t *testing.T) {
	t.Parallel()
	p := stocked("prod")
	p.Break(fake.Fault{Op: fake.OpCreate, Err: planted(fault.KindUnavailable), Late: true})
	_, err := of(p).Create(t.Context(), "prod", sandbox.Spec{})
	assert.Equal(t, fault.KindUnavailable, fault.KindOf(err))
	assert.Len(t, p.Calls(fake.OpCreate), 1, "an open outcome is not retried")
}

func TestExecHasNoDeadlineOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := stocked("prod", "abcd")
		exit, err := of(p).Exec(t.Context(), sandbox.Ref{Provider: "prod", ID: "abcd"}, providers.Command{Args: []string{"sleep", "3600"}})
		require.NoError(t, err)
		assert.Zero(t, *exit.Code)
	})
}

// TestLiveStatsShareWhatHasNotChanged: a record that is as it was is held once, and a listing that fails forgets none.
func TestLiveStatsShareWhatHasNotChanged(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", PageSize: 2})
	ids := p.Add(fake.Seed{}, fake.Seed{}, fake.Seed{})
	f := of(p)
	read := func() map[string]*sandbox.Sandbox {
		got := f.LiveStats(t.Context())[0]
		require.NoError(t, got.ItemsErr)
		all := map[string]*sandbox.Sandbox{}
		for s := range got.Listed() {
			all[s.ID] = s
		}
		assert.Len(t, all, len(got.Shared))
		return all
	}
	before := read()
	require.Len(t, before, 3)

	p.Break(fake.Fault{Op: fake.OpList, Page: 2, Err: planted(fault.KindUnavailable)})
	failed := f.LiveStats(t.Context())[0]
	require.Error(t, failed.ItemsErr)
	assert.Empty(t, failed.Shared)
	p.Mend()

	require.True(t, p.Change(ids[1], func(s *sandbox.Sandbox) { s.Labels = map[string]string{"team": "tools"} }))
	after := read()
	assert.Same(t, before[ids[0]], after[ids[0]])
	assert.Same(t, before[ids[2]], after[ids[2]])
	assert.NotSame(t, before[ids[1]], after[ids[1]])
	assert.Empty(t, before[ids[1]].Labels, "what was shown stays as it was")
	assert.Equal(t, "tools", after[ids[1]].Labels["team"])
}
