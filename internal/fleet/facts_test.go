package fleet

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/fault"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// maybe gives v, or nothing.
func maybe[T any](r *rand.Rand, v T) *T {
	if r.IntN(2) == 0 {
		return nil
	}
	return &v
}

func randomFacts(r *rand.Rand, at time.Time) Facts {
	verdicts := []sandbox.Verdict{"", sandbox.True, sandbox.False, sandbox.Unknown}
	states := sandbox.States()
	ago := func() time.Time { return at.Add(-time.Duration(r.IntN(3600)) * time.Second) }
	f := Facts{
		Sandbox: sandbox.Sandbox{
			Provider: "prod", ID: "box1", State: states[r.IntN(len(states))], CreatedAt: ago(), LastActivityAt: ago(),
			ActivityBasis: []sandbox.ActivityBasis{"", sandbox.BasisOutput, sandbox.BasisReports}[r.IntN(3)],
		},
		Processes: maybe(r, r.IntN(3)), Exited: r.IntN(4) == 0, Answers: verdicts[r.IntN(3)],
		Missing: r.IntN(4) == 0, TracksTasks: r.IntN(2) == 0, ProfileRead: r.IntN(2) == 0,
		Recorded: SandboxHistory{Finished: verdicts[r.IntN(4)], TimeLimitsHit: maybe(r, r.IntN(4))},
	}
	for i := range r.IntN(4) {
		f.Samples = append(f.Samples, sandbox.Usage{At: at.Add(time.Duration(i-4) * 5 * time.Second), CPUSeconds: new(float64(i)), MemoryBytes: new(int64(i) << 24), Source: "test"})
	}
	if f.ProfileRead {
		f.QuotaUsed = maybe(r, r.Float64())
	}
	if r.IntN(2) == 0 {
		f.Logs = &triage.LogFindings{Complete: r.IntN(2) == 0, Lines: r.IntN(9), Last: ago(), Errors: r.IntN(2), Calling: r.IntN(2) == 0, Repeat: triage.Repeat{Count: r.IntN(50)}}
	}
	switch r.IntN(3) {
	case 0:
		f.Work = &providers.Activity{LastWorkAt: ago(), LastHeartbeatAt: ago(), WaitsSince: ago(), Silence: time.Duration(r.IntN(3600)) * time.Second}
	case 1:
		f.SourceErr = fault.New(fault.KindUnavailable, "503")
	}
	unread := len(f.Samples) == 0 || f.Logs == nil || f.Processes == nil || f.Answers == ""
	if unread && r.IntN(3) == 0 {
		f.LookErr = fault.New(fault.KindTimeout, "late")
	}
	return f
}

// TestFactsAreAllOfAnObservation: an observation made of facts has these facts, and its signals have
// whatever the facts have.
func TestFactsAreAllOfAnObservation(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	r := rand.New(rand.NewPCG(1, 2))
	profile := NewProfileFigures(triage.FleetSignals{CreateFailures: new(int64(3))}, []sandbox.Sandbox{{State: sandbox.StateRunning, CreatedAt: at.Add(-time.Hour)}}, at)
	for range 2000 {
		f := randomFacts(r, at)
		o := f.Observation(profile, at)
		sig := o.Signals(triage.DefaultThresholds())
		assert.Equal(t, f, *o.factsOf(sig))
		assert.Equal(t, f.SourceErr != nil, sig.SourceFailed)
		assert.Equal(t, f.LookErr != nil, sig.LookFailed)
		assert.Equal(t, len(f.Samples) > 0, sig.Trend != nil)
		assert.Equal(t, f.Exited && f.Sandbox.State == sandbox.StateRunning || f.Recorded.Finished == sandbox.True, sig.Finished == sandbox.True)
		if f.ProfileRead {
			assert.EqualValues(t, 1, *sig.Fleet.OverStuckAge)
			assert.EqualValues(t, 3, *sig.Fleet.CreateFailures)
			assert.Len(t, sig.Fleet.History, 1)
		}
		if t.Failed() {
			t.Fatalf("%+v", f)
		}
	}
}

// TestFiguresOfAProfileCountByThreshold: the same listing has another count for another stuck age.
func TestFiguresOfAProfileCountByThreshold(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var items []sandbox.Sandbox
	for i := range 10 {
		items = append(items, sandbox.Sandbox{State: sandbox.StateRunning, CreatedAt: at.Add(-time.Duration(10-i) * time.Minute)})
	}
	p := NewProfileFigures(triage.FleetSignals{}, items, at)
	count := countListing(ProviderStats{Items: items}.Listed(), len(items), at)
	for _, age := range []time.Duration{0, time.Minute, 5 * time.Minute, 5*time.Minute + 1, time.Hour} {
		assert.Equal(t, *count.olderThan(age, at), *p.signals(age, at).OverStuckAge, age)
	}
	assert.Nil(t, NewProfileFigures(triage.FleetSignals{}, nil, at).signals(time.Minute, at).Active, "nothing was listed")
}

// TestAnObservationCountsByTheTimeItWasAskedFor: a sandbox at work when it was asked was judged by its
// usage, also if it has been silent for too long by the time of its verdict.
func TestAnObservationCountsByTheTimeItWasAskedFor(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	limits := func(sandbox.Sandbox) triage.Thresholds {
		l := triage.DefaultThresholds()
		l.WatchAge, l.Inactivity = time.Minute, 10*time.Second
		return l
	}
	row := sandbox.Sandbox{Provider: "prod", ID: "box1", State: sandbox.StateRunning, CreatedAt: at.Add(-5 * time.Minute), LastActivityAt: at.Add(-12 * time.Second), ActivityBasis: sandbox.BasisOutput}
	facts := &Facts{Sandbox: row, AskedAt: at.Add(-5 * time.Second), Samples: []sandbox.Usage{{At: at, CPUPercent: new(0.0)}}, Work: &providers.Activity{}}
	items := []Recorded{{Row: row, At: at, Facts: facts}}
	profile := NewProfileFigures(triage.FleetSignals{}, nil, at)
	assert.True(t, JudgeRecorded(items, profile, limits)[0].Verdict.Looked)
	facts.AskedAt = at
	assert.False(t, JudgeRecorded(items, profile, limits)[0].Verdict.Looked, "it was not at work, and too young to be stuck")
}
