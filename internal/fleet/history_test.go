package fleet_test

import (
	"context"
	"slices"
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
	"sbx/internal/triage"
)

// fixedHistory is a History that says the same of every sandbox and profile.
type fixedHistory struct {
	box     fleet.SandboxHistory
	profile triage.FleetSignals
	ending  time.Time
}

func (r fixedHistory) OfSandbox(context.Context, sandbox.Sandbox) fleet.SandboxHistory { return r.box }

func (r fixedHistory) OfProfile(context.Context, string) triage.FleetSignals { return r.profile }

func (r fixedHistory) EndingSince(context.Context, sandbox.Ref) time.Time { return r.ending }

func (fixedHistory) ListingSeen(string, map[sandbox.State]int64, []sandbox.Sandbox, []string) {}

func (fixedHistory) SandboxSeen(fleet.Observation) {}

// idle is a running sandbox that does nothing, and whose log would show it.
func idle(id string, age time.Duration, labels map[string]string) fake.Seed {
	made := time.Now().Add(-age)
	return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, CreatedAt: made, StartedAt: made, Labels: labels}, Usage: func(now time.Time) sandbox.Usage {
		return sandbox.Usage{At: now, CPUSeconds: new(0.0)}
	}}
}

// TestAnEndThatTakesTooLongIsStuck: by the provider's time, else by what sbx has seen; neither a listing nor a read
// says otherwise, and nothing but a look of its own makes it known.
func TestAnEndThatTakesTooLongIsStuck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reported, seen time.Duration
		want           sandbox.Verdict
		source         sandbox.AgeSource
	}{
		"reported":           {reported: time.Hour, seen: time.Minute, want: sandbox.True, source: sandbox.AgeEndingAt},
		"reported, recently": {reported: time.Minute, want: sandbox.Unknown},
		"seen":               {seen: time.Hour, want: sandbox.True, source: sandbox.AgeFirstSeen},
		"seen recently":      {seen: time.Minute, want: sandbox.Unknown},
		"not known":          {want: sandbox.Unknown},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			p := fake.New(fake.Options{Name: "prod"})
			ago := func(d time.Duration) (at time.Time) {
				if d > 0 {
					at = time.Now().Add(-d)
				}
				return at
			}
			p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "abcd", State: sandbox.StateTerminating, CreatedAt: ago(2 * time.Hour), EndingAt: ago(c.reported)}})
			f := with(fleet.Options{History: fixedHistory{ending: ago(c.seen)}}, p)
			got, err := f.Get(t.Context(), sandbox.Ref{Provider: "prod", ID: "abcd"})
			require.NoError(t, err)
			for _, s := range append(f.Collect(t.Context(), providers.Query{}).Items, got) {
				v := triage.Judge(s, triage.Signals{}, triage.DefaultThresholds(), time.Now())
				assert.Equal(t, c.want, v.Stuck)
				assert.Equal(t, "ending", v.Say())
				if c.want == sandbox.True {
					assert.Equal(t, sandbox.CauseEnding, v.Cause)
					assert.Contains(t, v.Reason, "stuck in its end for more than 10m")
					assert.Equal(t, string(c.source), v.Evidence[0].Source)
				}
			}
		})
	}
}

// TestEveryLookHearsTheHistory: whichever way a sandbox is looked at, the signals are the
// same, and the verdict with them.
func TestEveryLookHearsTheHistory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(idle("abcd", time.Hour, nil))
		over := sandbox.Evidence{What: "task", Value: "completed", Source: "t-1"}
		f := with(fleet.Options{History: fixedHistory{
			box:     fleet.SandboxHistory{Finished: sandbox.True, FinishedBy: over, TimeLimitsHit: new(2)},
			profile: triage.FleetSignals{CleanupRead: true, CreateFailures: new(int64(3))},
		}}, p)
		items := f.Collect(t.Context(), providers.Query{}).Items
		require.Len(t, items, 1)
		limits := triage.DefaultThresholds()
		for name, o := range map[string]fleet.Observation{
			"in full":        f.Observe(t.Context(), items[0]),
			"for life":       f.ObserveLife(t.Context(), items[0]),
			"beside samples": f.ObserveLifeWithSamples(t.Context(), items[0], []sandbox.Usage{{At: time.Now(), CPUSeconds: new(0.0)}}),
		} {
			sig := o.Signals(limits)
			assert.Equal(t, sandbox.True, sig.Finished, name)
			assert.Equal(t, over, sig.FinishedBy, name)
			assert.Equal(t, new(2), sig.TimeLimitsHit, name)
			require.NotNil(t, sig.Fleet, name)
			assert.Equal(t, []*int64{new(int64(3)), new(int64(1)), new(int64(1))}, []*int64{sig.Fleet.CreateFailures, sig.Fleet.Active, sig.Fleet.OverStuckAge}, name)
			assert.Contains(t, o.Judge(limits, time.Now()).Say(), "finished", name)
		}
		how := fleet.Judging{Now: time.Now, Thresholds: func(sandbox.Sandbox) triage.Thresholds { return limits }, Look: true}
		assert.Contains(t, f.Judge(t.Context(), items, how)[0].Verdict.Say(), "finished")
	})
}

// TestAListingThatWasCutOffCountsNobody: its counts are not known.
func TestAListingThatWasCutOffCountsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(idle("aaaa", time.Hour, nil), idle("bbbb", time.Minute, nil))
		f := of(p)
		s, err := p.Get(t.Context(), "aaaa")
		require.NoError(t, err)
		limits := triage.DefaultThresholds()
		active := func() *int64 { return f.ObserveLife(t.Context(), s).Signals(limits).Fleet.Active }
		assert.Nil(t, active(), "nobody has listed yet")
		p.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "503")})
		f.Collect(t.Context(), providers.Query{})
		p.Mend()
		f.Collect(t.Context(), providers.Query{States: []sandbox.State{sandbox.StateRunning}})
		assert.Nil(t, active(), "no listing showed everything")
		f.Collect(t.Context(), providers.Query{})
		assert.Equal(t, new(int64(2)), active())
		assert.Equal(t, new(int64(1)), f.ObserveLife(t.Context(), s).Signals(limits).Fleet.OverStuckAge)
	})
}

// TestAProgramThatHasExitedFinishesItsSandbox, by a look for life too, and only where
// create started a program.
func TestAProgramThatHasExitedFinishesItsSandbox(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		spec := sandbox.Spec{KeepAfterExit: true, Labels: map[string]string{sandbox.LabelRun: "main"}}
		f := of(p)
		made, err := f.Create(t.Context(), "prod", spec)
		require.NoError(t, err)
		require.True(t, p.Finish(made.ID, sandbox.Exit{Code: new(0), Raw: "0", Class: sandbox.ClassOK}))
		s, err := f.Get(t.Context(), made.Ref())
		require.NoError(t, err)
		require.Equal(t, sandbox.StateRunning, s.State)
		sig := f.ObserveLife(t.Context(), s).Signals(triage.DefaultThresholds())
		assert.Equal(t, sandbox.True, sig.Finished)
		assert.Equal(t, "its program", sig.FinishedBy.What)
		assert.Len(t, p.Calls(fake.OpExit), 1, "it is asked where the record may not tell")
		assert.Equal(t, sandbox.True, f.Observe(t.Context(), s).Signals(triage.DefaultThresholds()).Finished)
	})
}

// TestCausesOfTheProfile: what is on record of a profile names the runbook's causes 3 and 5.
func TestCausesOfTheProfile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(idle("runs", time.Hour, nil))
		f := with(fleet.Options{History: fixedHistory{profile: triage.FleetSignals{
			CleanupRead: true, CleanupSeen: time.Now().Add(-time.Hour), CreateFailures: new(int64(2)),
		}}}, p)
		s := f.Collect(t.Context(), providers.Query{}).Items[0]
		graded := func(s sandbox.Sandbox) map[string]sandbox.Confidence {
			found := map[string]sandbox.Confidence{}
			for _, finding := range f.ObserveLife(t.Context(), s).Judge(triage.DefaultThresholds(), time.Now()).Findings {
				found[finding.ID] = finding.Confidence
			}
			return found
		}
		assert.Equal(t, sandbox.Probable, graded(s)["cleanup_not_running"])
		assert.Equal(t, sandbox.Hint, graded(s)["resource_exhaustion"], "what runs has its resources")
		s.State = sandbox.StateProvisioning
		assert.Equal(t, sandbox.Hint, graded(s)["resource_exhaustion"], "another one runs")
		p.Change("runs", func(b *sandbox.Sandbox) { b.State = sandbox.StateProvisioning })
		f.Collect(t.Context(), providers.Query{})
		assert.Equal(t, sandbox.Probable, graded(s)["resource_exhaustion"])
	})
}

// TestTheQuotaIsAskedWhereSomethingDoesNotStart, once, and nowhere else.
func TestTheQuotaIsAskedWhereSomethingDoesNotStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", Quotas: []providers.Quota{
			{Name: "cpu", Used: new(1.0), Limit: new(10.0)}, {Name: "sandboxes", Used: new(19.0), Limit: new(20.0)}, {Name: "odd", Used: new(1.0)},
		}})
		p.Add(idle("runs", time.Hour, nil))
		f := of(p)
		limits := triage.DefaultThresholds()
		s, err := p.Get(t.Context(), "runs")
		require.NoError(t, err)
		f.Observe(t.Context(), s)
		assert.Empty(t, p.Calls(fake.OpQuota))
		s.State = sandbox.StateProvisioning
		for range 2 {
			assert.InDelta(t, 0.95, *f.ObserveLife(t.Context(), s).Signals(limits).Fleet.QuotaUsed, 0.001)
		}
		assert.Len(t, p.Calls(fake.OpQuota), 1)
	})
}

// TestAnAgentThatWaitsIsIdle until it works again, and only by its own report.
func TestAnAgentThatWaitsIsIdle(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tc := range map[string]struct {
		work providers.Activity
		err  error
		want sandbox.Verdict
	}{
		"it waits":            {providers.Activity{LastWorkAt: now.Add(-time.Hour), WaitsSince: now.Add(-time.Minute)}, nil, sandbox.True},
		"it worked after":     {providers.Activity{LastWorkAt: now, WaitsSince: now.Add(-time.Minute)}, nil, sandbox.False},
		"it reported nothing": {providers.Activity{LastWorkAt: now}, nil, ""},
		"a source failed":     {providers.Activity{WaitsSince: now}, fault.New(fault.KindUnavailable, "500"), ""},
	} {
		o := fleet.Observation{Sandbox: sandbox.Sandbox{State: sandbox.StateRunning}, Work: fleet.Part[providers.Activity]{Got: tc.work, Err: tc.err}}
		assert.Equal(t, tc.want, o.Signals(triage.DefaultThresholds()).Waits, name)
	}
	earlier, later := providers.Activity{WaitsSince: now.Add(-time.Minute)}, providers.Activity{LastWorkAt: now}
	assert.Zero(t, earlier.Later(later).WaitsSince, "another source saw it at work since")
	assert.Equal(t, earlier.WaitsSince, later.Later(providers.Activity{WaitsSince: now.Add(time.Second)}).WaitsSince.Add(-61*time.Second))
}

// TestListedExitsGiveATimeoutRate where a provider has no counters: 20 exits are enough, those of
// a task are counted by the task.
func TestListedExitsGiveATimeoutRate(t *testing.T) {
	t.Parallel()
	exit := func(n int, class sandbox.Class, task string) (all []sandbox.Sandbox) {
		for range n {
			all = append(all, sandbox.Sandbox{State: sandbox.StateFailed, TaskID: task, Exit: &sandbox.Exit{Class: class}})
		}
		return all
	}
	rate := func(items ...[]sandbox.Sandbox) *float64 {
		s := fleet.ProviderStats{Items: slices.Concat(items...)}
		return s.Signals(time.Minute, time.Now()).TimeoutRate()
	}
	assert.Nil(t, rate(exit(19, sandbox.ClassOK, "")), "too few")
	assert.InDelta(t, 0.1, *rate(exit(18, sandbox.ClassOK, ""), exit(2, sandbox.ClassTimeout, "T-1"), exit(50, sandbox.ClassTimeout, "t-abcdefghijkl")), 1e-9)
}
