package fleet_test

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
	"sbx/internal/sandbox"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
	"sbx/internal/triage"
)

const tailLines = 200

// atWork is a sandbox in a state that burns a third of a core.
func atWork(state sandbox.State) fake.Seed {
	s := sandbox.Sandbox{ID: "abcd", State: state, CreatedAt: time.Now().Add(-time.Hour)}
	if state.Ended() {
		s.EndedAt = time.Now()
	}
	return fake.Seed{Sandbox: s, Logs: make([]sandbox.LogLine, 3*tailLines), Usage: func(now time.Time) sandbox.Usage {
		return sandbox.Usage{At: now, CPUSeconds: new(now.Sub(s.CreatedAt).Seconds() / 3)}
	}}
}

func TestARecordAgreesWithAProbe(t *testing.T) {
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
		o := fleet.Observation{Sandbox: sandbox.Sandbox{State: tc.state}}
		o.Health.Got.Verdict = tc.answers
		assert.Equal(t, tc.want, o.Signals(triage.DefaultThresholds()).Agrees, "%s %s", tc.state, tc.answers)
	}
}

func TestSignalsUseNothingOfAPartThatFailed(t *testing.T) {
	t.Parallel()
	limits := triage.DefaultThresholds()
	o := fleet.Observation{Sandbox: sandbox.Sandbox{State: sandbox.StateRunning}}
	o.Usage.Got = []sandbox.Usage{{At: time.Now()}}
	o.Logs.Got = []sandbox.LogLine{{Text: "Out of memory"}}
	o.Health.Got.Verdict = sandbox.True
	sig := o.Signals(limits)
	require.NotNil(t, sig.Trend)
	require.NotNil(t, sig.Logs)
	assert.Equal(t, "out_of_memory", sig.Logs.Hits[0].Pattern.ID)
	assert.Equal(t, []sandbox.Verdict{sandbox.True, sandbox.True, sandbox.True}, []sandbox.Verdict{sig.Answers, sig.Agrees, sig.Exists})

	broken := errors.New("cut off")
	o.Usage.Err, o.Logs.Err, o.Health.Err, o.Processes.Err = broken, broken, broken, broken
	assert.Equal(t, triage.Signals{Looked: true, Exists: sandbox.True, LookFailed: true}, o.Signals(limits))
	o.Work.Err = broken
	assert.Equal(t, triage.Signals{Looked: true, Exists: sandbox.True, LookFailed: true, SourceFailed: true}, o.Signals(limits))

	for _, err := range []error{nil, fault.New(fault.KindUnsupported, "no such API")} {
		o.Usage.Err, o.Logs.Err, o.Health.Err, o.Processes.Err = err, err, err, err
		o.Usage.Got = nil
		require.NoError(t, o.LookErr(), "it fails no source: %v", err)
	}
	dead := fault.New(fault.KindUnavailable, "the port is not open").Inside()
	o.Usage.Err, o.Logs.Err, o.Processes.Err, o.Health.Err = dead, dead, dead, nil
	o.Health.Got.Verdict = sandbox.False
	require.NoError(t, o.LookErr(), "the probe shows why")
	o.Health.Got.Verdict = sandbox.Unknown
	require.Error(t, o.LookErr())
}

// TestAQueryThatFailsIsNoSilence: whichever query of a sandbox fails, however, the sandbox is not judged, the failure is
// named, and age decides nothing where the profile judges by age only. It is idle in all that is read.
func TestAQueryThatFailsIsNoSilence(t *testing.T) {
	t.Parallel()
	failures := map[string]fake.Fault{
		"503": {Err: fault.New(fault.KindUnavailable, "503")}, "503 for one": {Err: fault.New(fault.KindUnavailable, "503").Inside()},
		"404": {Err: fault.New(fault.KindNotFound, "404")}, "410 for one": {Err: fault.New(fault.KindGone, "410").Inside()},
		"401": {Err: fault.New(fault.KindAuth, "401").Inside()}, "hangs": {Hang: true},
	}
	for name, failure := range failures {
		for _, op := range []fake.Op{fake.OpUsage, fake.OpLogs, fake.OpProcesses, fake.OpProbe} {
			for _, captured := range []bool{false, true} {
				bubble.Run(t, fmt.Sprintf("%s %s %v", op, name, captured), func(t *testing.T) {
					made := time.Now().Add(-time.Hour)
					p := fake.New(fake.Options{Name: "prod", PartialLogs: !captured})
					p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "abcd", CreatedAt: made, StartedAt: made}, Usage: func(now time.Time) sandbox.Usage {
						return sandbox.Usage{At: now, CPUPercent: new(0.0)}
					}})
					fails := failure
					fails.Op = op
					p.Break(fails)
					if op == fake.OpUsage { // stored samples stand in for those that cannot be read
						fails.Op = fake.OpHistory
						p.Break(fails)
					}
					s, err := p.Get(t.Context(), "abcd")
					require.NoError(t, err)
					s.LastActivityAt = time.Time{}
					limits := triage.DefaultThresholds()
					limits.AgeOnly = true
					f := fleet.New([]fleet.Member{{Provider: p, Timeout: time.Second}}, fleet.Options{Thresholds: func(sandbox.Sandbox) triage.Thresholds { return limits }})
					o := f.Observe(t.Context(), s)
					v := o.Judge(limits, time.Now())
					assert.NotEqual(t, sandbox.True, v.Stuck, v.Reason)
					assert.NotEqual(t, sandbox.False, v.Activity, v.Reason)
					require.Error(t, o.FailedErr())
					assert.True(t, v.Unjudged())
					assert.NotEmpty(t, fleet.FailedLooks([]fleet.FailedLook{{Profile: "prod", Err: o.FailedErr()}}))
				})
			}
		}
	}
}

// TestAnUnreadFigureIsNoRest: usage without a figure of the processor does not show that nothing works.
func TestAnUnreadFigureIsNoRest(t *testing.T) {
	t.Parallel()
	o := fleet.Observation{Sandbox: sandbox.Sandbox{State: sandbox.StateRunning, CreatedAt: time.Now().Add(-time.Hour)}}
	o.Usage.Got = []sandbox.Usage{{At: time.Now(), MemoryBytes: new(int64(1))}}
	limits := triage.DefaultThresholds()
	limits.AgeOnly = true
	require.Error(t, o.LookErr())
	assert.Equal(t, sandbox.Unknown, o.Judge(limits, time.Now()).Stuck)
	o.Usage.Got[0].CPUPercent = new(0.0)
	require.NoError(t, o.LookErr())
}

func TestObserveAsksForWhatItNeeds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		state   sandbox.State
		samples int
	}{
		"running: two samples, for rates": {sandbox.StateRunning, 2},
		"ended: one":                      {sandbox.StateFailed, 1},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod"})
			p.Add(atWork(tc.state))
			s, err := p.Get(t.Context(), "abcd")
			require.NoError(t, err)
			o := of(p).Observe(t.Context(), s)
			for what, err := range map[string]error{"usage": o.Usage.Err, "logs": o.Logs.Err, "events": o.Events.Err, "health": o.Health.Err} {
				require.NoError(t, err, what)
			}
			assert.Len(t, o.Usage.Got, tc.samples)
			assert.Len(t, p.Calls(fake.OpUsage), tc.samples)
			assert.Len(t, o.Logs.Got, tailLines)
			assert.NotEmpty(t, o.Events.Got)
			assert.NotEmpty(t, o.Health.Got.Evidence)
			assert.Empty(t, p.Calls(fake.OpTerminate, fake.OpExec, fake.OpCreate), "a look changes nothing")
		})
	}
}

// TestFailedProbesAreRepeated: one probe that fails proves nothing where the threshold says so.
func TestFailedProbesAreRepeated(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		dead         bool
		limit, asked int
	}{{true, 3, 3}, {true, 1, 1}, {false, 3, 1}} {
		synctest.Test(t, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod"})
			seed := atWork(sandbox.StateRunning)
			seed.Dead = tc.dead
			p.Add(seed)
			s, err := p.Get(t.Context(), "abcd")
			require.NoError(t, err)
			f := with(fleet.Options{Thresholds: func(sandbox.Sandbox) triage.Thresholds {
				return triage.DefaultThresholds().With(triage.Thresholds{FailedProbes: tc.limit})
			}}, p)
			o := f.Observe(t.Context(), s)
			assert.Len(t, p.Calls(fake.OpProbe), tc.asked)
			assert.Equal(t, sandbox.VerdictOf(!tc.dead), o.Health.Got.Verdict)
		})
	}
}

func TestALookForLifeAsksForNothingElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(atWork(sandbox.StateRunning))
		s, err := p.Get(t.Context(), "abcd")
		require.NoError(t, err)
		o := of(p).ObserveLife(t.Context(), s)
		assert.InDelta(t, 33.3, *o.Signals(triage.DefaultThresholds()).Trend.CPUPercent, 0.1)
		assert.Len(t, o.Logs.Got, tailLines)
		assert.Empty(t, p.Calls(fake.OpProbe, fake.OpEvents, fake.OpExit))
	})
}

func TestOneSampleOfTwoIsNoUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(atWork(sandbox.StateRunning))
		p.Break(fake.Fault{Op: fake.OpUsage, After: 1, Err: fault.New(fault.KindUnavailable, "503")})
		s, err := p.Get(t.Context(), "abcd")
		require.NoError(t, err)
		got := of(p).ObserveLife(t.Context(), s).Usage
		assert.Len(t, got.Got, 1)
		assert.Equal(t, fault.KindUnavailable, fault.KindOf(got.Err))

		p.Mend()
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		got = of(p).ObserveLife(ctx, s).Usage
		assert.Len(t, got.Got, 1)
		assert.Equal(t, fault.KindTimeout, fault.KindOf(got.Err))
	})
}

func TestTailHoldsTheLastLinesWhateverComes(t *testing.T) {
	t.Parallel()
	for _, lines := range []int{0, 1, tailLines, tailLines + 1, 2 * tailLines, 2*tailLines + 1, 10*tailLines + 7} {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "aaaa"}, Flood: lines})
		p.Tell(fake.LieTailAll)
		got := of(p).Tail(t.Context(), sandbox.Ref{Provider: "prod", ID: "aaaa"}, tailLines)
		require.NoError(t, got.Err)
		require.Len(t, got.Got, min(lines, tailLines))
		for i, line := range got.Got {
			assert.Equal(t, fmt.Sprintf("line %d", max(0, lines-tailLines)+i), line.Text)
		}
		assert.LessOrEqual(t, cap(got.Got), 4*tailLines, "memory is bounded")
	}
}
