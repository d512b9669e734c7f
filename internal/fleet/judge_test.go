package fleet_test

import (
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

// filling is a sandbox whose memory grows by 4 MiB a second.
func filling(id string, age time.Duration) fake.Seed {
	made := time.Now().Add(-age)
	return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, CreatedAt: made, StartedAt: made}, Usage: func(now time.Time) sandbox.Usage {
		used := 200*sandbox.MiB + int64(now.Sub(made.Add(age)).Seconds()*4*sandbox.MiB)
		return sandbox.Usage{At: now, CPUSeconds: new(0.0), MemoryBytes: &used, MemoryLimitBytes: new(int64(512 * sandbox.MiB))}
	}}
}

// TestALookTakesTheTimeThatATrendNeeds: two samples 0.3 s apart are no slope, so the
// look goes on where memory may be filling up, and only there.
func TestALookTakesTheTimeThatATrendNeeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(filling("leak", time.Hour), atWork(sandbox.StateRunning))
		for id, want := range map[string]time.Duration{"leak": 5 * time.Second, "abcd": 0} {
			s, err := p.Get(t.Context(), id)
			require.NoError(t, err)
			began := time.Now()
			o := of(p).ObserveLife(t.Context(), s)
			trend := o.Signals(triage.DefaultThresholds()).Trend
			require.NotNil(t, trend, id)
			assert.GreaterOrEqual(t, time.Since(began), want, id)
			assert.Less(t, time.Since(began), want+2*time.Second, id)
			assert.Equal(t, want > 0, trend.MemorySlope != nil, id)
		}
	})
}

// TestALookEndsWhereASourceRepeatsItsSample: it is not asked for ever.
func TestALookEndsWhereASourceRepeatsItsSample(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		seed, began := filling("leak", time.Hour), time.Now()
		grows := seed.Usage
		seed.Usage = func(now time.Time) sandbox.Usage {
			if now.Sub(began) > time.Second {
				now = began.Add(time.Second)
			}
			return grows(now)
		}
		p.Add(seed)
		s, err := p.Get(t.Context(), "leak")
		require.NoError(t, err)
		o := of(p).ObserveLife(t.Context(), s)
		require.NoError(t, o.Usage.Err)
		assert.True(t, o.Signals(triage.DefaultThresholds()).Trend.TooShort)
	})
}

// TestABusyProcessorIsFollowedForAsLongAsItMayExcuseSilence, also where that is longer than the default.
func TestABusyProcessorIsFollowedForAsLongAsItMayExcuseSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod", PartialLogs: true})
		began := time.Now().Add(-time.Hour)
		p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: "busy0001", CreatedAt: began, StartedAt: began}, Usage: func(now time.Time) sandbox.Usage {
			return sandbox.Usage{CPUPercent: new(100.0), CPUSeconds: new(now.Sub(began).Seconds())}
		}})
		s, err := p.Get(t.Context(), "busy0001")
		require.NoError(t, err)
		limits := triage.DefaultThresholds().With(triage.Thresholds{BusySilence: 20 * time.Minute})
		o := with(fleet.Options{Thresholds: func(sandbox.Sandbox) triage.Thresholds { return limits }}, p).ObserveLife(t.Context(), s)
		v := o.Judge(limits, time.Now())
		assert.Equal(t, sandbox.True, v.Stuck, v.Reason)
		assert.Equal(t, sandbox.CauseBusyLoop, v.Cause)
	})
}

func TestJudgeLooksOnlyWhereTheRecordLeavesItOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		made := func(id string, age time.Duration) fake.Seed {
			at := time.Now().Add(-age)
			return fake.Seed{Sandbox: sandbox.Sandbox{ID: id, CreatedAt: at, StartedAt: at}, Usage: func(now time.Time) sandbox.Usage {
				return sandbox.Usage{At: now, CPUSeconds: new(0.0)}
			}}
		}
		p := fake.New(fake.Options{Name: "prod"})
		p.Add(made("young", time.Minute), made("quiet", time.Hour))
		f := of(p)
		how := fleet.Judging{Now: time.Now, Thresholds: func(sandbox.Sandbox) triage.Thresholds { return triage.DefaultThresholds() }}
		items := f.Collect(t.Context(), providers.Query{}).Items
		for _, j := range f.Judge(t.Context(), items, how) {
			assert.False(t, j.Verdict.Looked)
			assert.Equal(t, j.Sandbox.ID == "quiet", j.Verdict.Unjudged())
		}
		assert.Empty(t, p.Calls(fake.OpUsage, fake.OpLogs))
		how.Look = true
		got := f.Judge(t.Context(), items, how)
		assert.False(t, got[0].Verdict.Looked, "what is young is not looked at")
		assert.Equal(t, sandbox.True, got[1].Verdict.Stuck, got[1].Verdict.Reason)
		assert.True(t, got[1].Verdict.Looked)
		both := f.Observe(t.Context(), items[1])
		assert.Equal(t, got[1].Verdict.Cause, both.Judge(triage.DefaultThresholds(), time.Now()).Cause, "a full look says the same")
	})
}

// TestEverySandboxCarriesTheClockOfItsProvider: readers of its age need no other correction.
func TestEverySandboxCarriesTheClockOfItsProvider(t *testing.T) {
	t.Parallel()
	p := fake.New(fake.Options{Name: "prod", Skew: -15 * time.Minute})
	now := time.Now()
	id := p.Add(fake.Seed{Sandbox: sandbox.Sandbox{CreatedAt: now.Add(-15*time.Minute - 5*time.Second)}})[0]
	f := of(p)
	listed := f.Collect(t.Context(), providers.Query{}).Items
	got, err := f.Get(t.Context(), sandbox.Ref{Provider: "prod", ID: id})
	require.NoError(t, err)
	found, err := f.Find(t.Context(), []string{"prod/" + id, id}, fleet.FindOptions{})
	require.NoError(t, err)
	for _, s := range append(append(listed, got), found...) {
		age, _ := s.Age(now)
		assert.Equal(t, 5*time.Second, age)
	}
}

// TestTracksTasks: where no source would name a task, a missing one proves nothing.
func TestTracksTasks(t *testing.T) {
	t.Parallel()
	maker, reader, plane := fake.New(fake.Options{Name: "maker"}), fake.New(fake.Options{Name: "reader"}), fake.New(fake.Options{Name: "plane"})
	f := fleet.New([]fleet.Member{{Provider: maker}, {Provider: reader.Only("logs")}, {Provider: plane.Only("records")}}, fleet.Options{})
	for profile, want := range map[string]bool{"maker": true, "plane": true, "reader": false, "nobody": false} {
		o := f.ObserveLife(t.Context(), sandbox.Sandbox{Provider: profile, ID: "x", State: sandbox.StateFailed})
		assert.Equal(t, want, o.Signals(triage.DefaultThresholds()).TracksTasks, profile)
	}
}

// TestJudgeReadsTheUsageOfThoseAtWork: one that writes output may leak all the same. Young ones are not
// asked, and a figure that cannot be read leaves the verdict of the record.
func TestJudgeReadsTheUsageOfThoseAtWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := fake.New(fake.Options{Name: "prod"})
		add := func(id string, age time.Duration, usage func(time.Time) sandbox.Usage) {
			at := time.Now().Add(-age)
			p.Add(fake.Seed{Sandbox: sandbox.Sandbox{ID: id, CreatedAt: at, StartedAt: at, LastActivityAt: time.Now()}, Usage: usage})
		}
		leak := filling("leak", 0).Usage
		add("leaks001", time.Hour, leak)
		add("young001", time.Minute, leak)
		add("works001", time.Hour, func(now time.Time) sandbox.Usage { return sandbox.Usage{At: now, CPUSeconds: new(0.0)} })
		add("mute0001", time.Hour, nil)
		p.Break(fake.Fault{Op: fake.OpUsage, ID: "mute0001", Err: fault.New(fault.KindUnavailable, "no")})
		f := of(p)
		items := f.Collect(t.Context(), providers.Query{}).Items
		how := looking()
		causes := func() map[string]sandbox.Cause {
			found := map[string]sandbox.Cause{}
			for _, j := range f.Judge(t.Context(), items, how) {
				found[j.Sandbox.ID] = j.Verdict.Cause
				assert.Equal(t, sandbox.True, j.Verdict.Activity, j.Sandbox.ID)
				require.NoError(t, j.Failed)
			}
			return found
		}
		none := sandbox.CauseNone
		assert.Equal(t, map[string]sandbox.Cause{"leaks001": none, "young001": none, "works001": none, "mute0001": none}, causes())
		assert.Empty(t, p.Calls(fake.OpUsage))
		how.Usage = true
		assert.Equal(t, map[string]sandbox.Cause{"leaks001": sandbox.CauseLeak, "young001": none, "works001": none, "mute0001": none}, causes())
		for _, c := range p.Calls(fake.OpUsage) {
			assert.NotEqual(t, "young001", c.ID)
		}
	})
}
