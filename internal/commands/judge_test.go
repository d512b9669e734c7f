package commands

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/fault"
	"sbx/internal/fleet"
	"sbx/internal/providers/fake"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func TestAgrees(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state   sandbox.State
		answers sandbox.Verdict
		want    sandbox.Verdict
	}{
		{sandbox.StateRunning, sandbox.True, sandbox.True},
		{sandbox.StateRunning, sandbox.False, sandbox.False},
		{sandbox.StateRunning, sandbox.Unknown, sandbox.Unknown},
		{sandbox.StateRunning, "", sandbox.Unknown},
		{sandbox.StateFailed, sandbox.False, sandbox.True},
		{sandbox.StateTerminated, sandbox.True, sandbox.False},
		{sandbox.StatePaused, sandbox.False, sandbox.Unknown},
		{sandbox.StateProvisioning, sandbox.False, sandbox.Unknown},
		{sandbox.StateUnknown, sandbox.True, sandbox.Unknown},
	} {
		assert.Equal(t, tc.want, agrees(tc.state, tc.answers), "%s %s", tc.state, tc.answers)
	}
}

func TestOnceSaysAnInterruptionOnce(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.KindUnavailable, "503")
	cut := func() []error {
		return []error{down, context.Canceled, fault.New(fault.KindTimeout, "late"), fault.New(fault.KindTerminated, "SIGTERM")}
	}
	assert.Equal(t, cut(), once(t.Context(), cut()), "nothing ended: every error stands for itself")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fault.New(fault.KindCanceled, "interrupted"))
	got := once(ctx, cut())
	require.Len(t, got, 2)
	assert.Equal(t, down, got[0])
	require.EqualError(t, got[1], "interrupted")
}

func TestMissingSaysWhy(t *testing.T) {
	t.Parallel()
	unable := part[int]{err: fault.New(fault.KindUnsupported, "a provider of type fake has no probe").At("prod", "")}
	assert.Equal(t, "cannot be known: a provider of type fake has no probe", unable.missing())
	assert.Equal(t, "could not be read: 503", part[int]{err: fault.New(fault.KindUnavailable, "503").At("prod", "probe x")}.missing())
	assert.Equal(t, "could not be read: odd", part[int]{err: errors.New("odd")}.missing())
}

func TestSignalsUseNothingOfAPartThatFailed(t *testing.T) {
	t.Parallel()
	limits := triage.DefaultThresholds()
	o := observation{box: running("aaaa", time.Minute).Sandbox}
	o.usage.got = []sandbox.Usage{{At: noon}}
	o.logs.got = []sandbox.LogLine{{Text: "Out of memory"}}
	o.health.got.Verdict = sandbox.True
	sig := o.signals(limits, true)
	require.NotNil(t, sig.Trend)
	require.NotNil(t, sig.Logs)
	assert.True(t, sig.Logs.Has("out_of_memory"))
	assert.Equal(t, []sandbox.Verdict{sandbox.True, sandbox.True, sandbox.True}, []sandbox.Verdict{sig.Answers, sig.Agrees, sig.Exists})
	assert.True(t, sig.TracksTasks)

	broken := errors.New("cut off")
	o.usage.err, o.logs.err, o.health.err = broken, broken, broken
	sig = o.signals(limits, false)
	assert.Equal(t, triage.Signals{Exists: sandbox.True}, sig)
}

func TestObserveAsksForWhatItNeeds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		seed    fake.Seed
		samples int
	}{
		"running: two samples, for rates": {calm(), 2},
		"ended: one":                      {oomed(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, p := oneFake(tc.seed)
				p.Write(tc.seed.Sandbox.ID, make([]sandbox.LogLine, 3*tailLines)...)
				s, err := p.Get(t.Context(), tc.seed.Sandbox.ID)
				require.NoError(t, err)
				o := observe(t.Context(), fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{Now: atNoon}), s)
				assert.Empty(t, o.errs(t.Context()))
				assert.Len(t, o.usage.got, tc.samples)
				assert.Len(t, p.Calls(fake.OpUsage), tc.samples)
				assert.Len(t, o.logs.got, tailLines)
				assert.NotEmpty(t, o.events.got)
				assert.NotEmpty(t, o.health.got.Evidence)
				assert.Empty(t, p.Calls(fake.OpTerminate, fake.OpExec, fake.OpCreate), "a look changes nothing")
			})
		})
	}
}

func TestOneSampleOfTwoIsNoUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, p := oneFake(calm())
		p.Break(fake.Fault{Op: fake.OpUsage, After: 1, Err: fault.New(fault.KindUnavailable, "503")})
		f := fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{Now: atNoon})
		s, err := p.Get(t.Context(), "calm0001")
		require.NoError(t, err)
		got := sampled(t.Context(), f, s)
		assert.Len(t, got.got, 1)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(got.err))

		p.Mend()
		ctx, stop := context.WithTimeout(t.Context(), sampleEvery/2)
		defer stop()
		got = sampled(ctx, f, s)
		assert.Len(t, got.got, 1)
		assert.Equal(t, fault.KindTimeout, fault.KindOf(got.err))
	})
}

func TestTailHoldsTheLastLinesWhateverComes(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{0, 1, tailLines, tailLines + 1, 2 * tailLines, 2*tailLines + 1, 10*tailLines + 7} {
		_, p := oneFake(fake.Seed{Sandbox: running("aaaa", time.Hour).Sandbox, Flood: lines})
		p.Tell(fake.LieTailAll)
		f := fleet.New([]fleet.Member{{Provider: p}}, fleet.Options{Now: atNoon})
		got := tail(t.Context(), f, sandbox.Ref{Provider: "prod", ID: "aaaa"})
		require.NoError(t, got.err)
		require.Len(t, got.got, min(lines, tailLines))
		for i, line := range got.got {
			assert.Equal(t, fmt.Sprintf("line %d", max(0, lines-tailLines)+i), line.Text)
		}
		assert.LessOrEqual(t, cap(got.got), 4*tailLines, "memory is bounded")
	}
}

func TestTracksTasks(t *testing.T) {
	t.Parallel()
	maker, reader := fake.New(fake.Options{Name: "maker"}), fake.New(fake.Options{Name: "reader"})
	f := fleet.New([]fleet.Member{{Provider: maker}, {Provider: reader.Only("logs")}}, fleet.Options{})
	assert.True(t, tracksTasks(f, "maker"))
	assert.False(t, tracksTasks(f, "reader"))
	assert.False(t, tracksTasks(f, "nobody"))
}
