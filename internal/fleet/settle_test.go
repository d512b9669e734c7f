package fleet_test

import (
	"fmt"
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

// inner are the operations that reach into a sandbox.
func inner() []fake.Op { return []fake.Op{fake.OpUsage, fake.OpLogs, fake.OpProcesses, fake.OpExit} }

// TestADefiniteAnswerEndsALook, and the verdict is that of a look which asks for everything.
func TestADefiniteAnswerEndsALook(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.KindUnavailable, fault.KindGone} {
		var verdicts []triage.Verdict
		for _, definite := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := fake.New(fake.Options{Name: "prod"})
				seed := atWork(sandbox.StateRunning)
				seed.Dead, seed.Sandbox.Labels = true, map[string]string{sandbox.LabelRun: "main"}
				p.Add(seed)
				answer := fault.New(kind, "the port is not open").Inside()
				answer.Definite = definite
				for _, op := range inner() {
					p.Break(fake.Fault{Op: op, Err: answer})
				}
				s, err := p.Get(t.Context(), "abcd")
				require.NoError(t, err)
				for _, o := range []fleet.Observation{of(p).ObserveLife(t.Context(), s), of(p).Observe(t.Context(), s)} {
					assert.Equal(t, sandbox.False, o.Health.Got.Verdict)
					require.NoError(t, o.FailedErr())
					verdicts = append(verdicts, o.Judge(triage.DefaultThresholds(), time.Now()))
				}
				if definite {
					assert.Len(t, p.Calls(fake.OpUsage), 2, "one for each look")
					assert.Len(t, p.Calls(fake.OpProbe), 2)
					assert.Empty(t, p.Calls(fake.OpLogs, fake.OpProcesses, fake.OpExit))
				}
			})
		}
		assert.Equal(t, verdicts[0].Stuck, verdicts[2].Stuck)
		assert.Equal(t, verdicts[0].Reason, verdicts[2].Reason)
		assert.Equal(t, verdicts[1].Reason, verdicts[3].Reason)
	}
}

// TestALookGoesOnWhereTheProbeIsAnswered: what was definite was so for a moment.
func TestALookGoesOnWhereTheProbeIsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(atWork(sandbox.StateRunning))
		restarts := fault.New(fault.KindUnavailable, "the port is not open").Inside()
		restarts.Definite = true
		p.Break(fake.Fault{Op: fake.OpUsage, Times: 1, Err: restarts})
		s, err := p.Get(t.Context(), "abcd")
		require.NoError(t, err)
		o := of(p).ObserveLife(t.Context(), s)
		require.NoError(t, o.Usage.Err)
		assert.Len(t, o.Logs.Got, tailLines)
		require.NoError(t, o.Processes.Err)
	})
}

// TestWhatHangsIsAskedOnce: of three hundred that do not answer each further query would cost minutes.
func TestWhatHangsIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, full := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod"})
			for i := range 60 {
				made := time.Now().Add(-time.Hour)
				p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: fmt.Sprintf("box-%02d", i), CreatedAt: made, StartedAt: made, Labels: map[string]string{sandbox.LabelRun: "main"}}})
			}
			for _, op := range append(inner(), fake.OpProbe, fake.OpGet, fake.OpHistory, fake.OpEvents, fake.OpActivity) {
				p.Break(fake.Fault{Op: op, Hang: true})
			}
			f := fleet.New([]fleet.Member{{Provider: p, Timeout: time.Second}}, fleet.Options{})
			items := f.Collect(t.Context(), providers.Query{}).Items
			before := len(p.Calls())
			began := time.Now()
			f.Look(t.Context(), items, fleet.Looking{Thresholds: looking().Thresholds, Full: full}, func(_ int, o fleet.Observation) {
				require.Error(t, o.FailedErr())
			})
			assert.LessOrEqual(t, len(p.Calls())-before, 60*2)
			assert.LessOrEqual(t, time.Since(began), 60*2*time.Second/fleet.DefaultSlots+time.Second)
		})
	}
}
