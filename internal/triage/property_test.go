package triage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

// guess makes a random sandbox with random signals; much of it is missing.
func guess(r *rand.Rand) (sandbox.Sandbox, Signals) {
	at := func() time.Time {
		if r.IntN(3) == 0 {
			return time.Time{}
		}
		return noon().Add(time.Duration(120-r.IntN(3600)) * time.Second)
	}
	verdict := func() sandbox.Verdict {
		return []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown, ""}[r.IntN(4)]
	}
	s := sandbox.Sandbox{
		State:     append(sandbox.States(), sandbox.StateRunning, sandbox.StateRunning)[r.IntN(10)],
		CreatedAt: at(), FirstSeenAt: at(), EndingAt: at(), EndingSeenAt: at(), LastActivityAt: at(), ActivityBasis: []sandbox.ActivityBasis{"", sandbox.BasisOutput, sandbox.BasisReports, sandbox.BasisRequests}[r.IntN(4)], Activity: verdict(), TaskID: []string{"", "t-1"}[r.IntN(2)],
	}
	sig := Signals{Exists: verdict(), Agrees: verdict(), TracksTasks: r.IntN(2) == 0}
	if r.IntN(2) == 0 {
		sig.Logs = &LogFindings{Complete: r.IntN(2) == 0, Lines: r.IntN(3), Last: at(), Errors: r.IntN(2), Calling: r.IntN(2) == 0, Repeat: Repeat{"x", r.IntN(50)}}
	}
	if r.IntN(2) == 0 {
		sig.Trend = trend([]float64{-1, 0, 0.5, 50, 100}[r.IntN(5)], []float64{-1, 0, 5000}[r.IntN(3)], []string{"", "sleep", "tcp 1.2.3.4:5"}[r.IntN(3)])
	}
	return s, sig
}

// TestWhatIsStuckIsOldAndShowsNoLife: every stuck sandbox is over its limit by a known age and
// shows no sign of life.
func TestWhatIsStuckIsOldAndShowsNoLife(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10)) // a seed that repeats
	th, found := DefaultThresholds(), 0
	for range 20_000 {
		s, sig := guess(r)
		got := judgeStuck(s, sig, th, noon())
		require.NotEmpty(t, got.reasons)
		if got.verdict != sandbox.True {
			continue
		}
		found++
		note := fmt.Sprintf("%+v\n%+v\n%s", s, sig, joinReasons(got.reasons))
		if s.State == sandbox.StateTerminating {
			since, source := s.Ending(noon())
			require.NotEqual(t, sandbox.AgeUnknown, source, note)
			require.Greater(t, since, th.EndingAge, note)
			continue
		}
		age, source := s.Age(noon())
		require.NotEqual(t, sandbox.AgeUnknown, source, note)
		require.NotEmpty(t, got.evidence, note)
		if s.State == sandbox.StateProvisioning {
			require.Greater(t, age, th.ProvisioningAge, note)
			continue
		}
		require.Equal(t, sandbox.StateRunning, s.State, note)
		require.Greater(t, age, th.StuckAge, note)
		if !sig.cpuBusy(th) {
			require.NotEqual(t, sandbox.True, s.Activity, note)
			require.False(t, sig.showsWork(th), note)
			sign := latestSign(s, sig, noon())
			require.False(t, sign.seenWithin(th.Inactivity), note)
			require.True(t, sign.silentLonger(th.Inactivity) || s.Activity == sandbox.False || sig.leaksMemory(th) || sig.Answers == sandbox.False || sig.Exists == sandbox.False, note)
		}
	}
	require.Greater(t, found, 500, "the guesses must reach the rule")
}

// TestASignOfLifeSaves adds a sign of life to whatever is stuck by silence.
func TestASignOfLifeSaves(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(11, 12)) // a seed that repeats
	th := DefaultThresholds()
	for range 5_000 {
		s, sig := guess(r)
		if s.State != sandbox.StateRunning || sig.cpuBusy(th) {
			continue
		}
		s.Activity = sandbox.True
		require.NotEqual(t, sandbox.True, judgeStuck(s, sig, th, noon()).verdict)
		s.Activity, sig.Trend = sandbox.Unknown, trend(50, -1, "")
		require.NotEqual(t, sandbox.True, judgeStuck(s, sig, th, noon()).verdict)
		sig.Trend, sig.Logs = nil, quietFor(0)
		if !s.LastActivityAt.After(noon()) {
			require.NotEqual(t, sandbox.True, judgeStuck(s, sig, th, noon()).verdict)
		}
	}
}

// TestRankingsAreInOrder holds for every ranking: scores and coverages are
// shares, confidence falls from top to bottom, thin evidence is a hint at most,
// and symptoms alone make nothing certain.
func TestRankingsAreInOrder(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 14)) // a seed that repeats
	for range 5_000 {
		s, sig := guess(r)
		ranked := rankCauses(s, sig, DefaultThresholds(), noon())
		for i, f := range ranked {
			require.Positive(t, f.Score)
			require.LessOrEqual(t, f.Score, 1.0)
			require.Positive(t, f.Coverage)
			require.LessOrEqual(t, f.Coverage, 1.0)
			require.NotEqual(t, sandbox.Certain, f.Confidence)
			require.False(t, f.Coverage < enoughCovered && f.Confidence == sandbox.Probable, "%+v", f)
			require.False(t, i > 0 && confidenceRank(f.Confidence) > confidenceRank(ranked[i-1].Confidence), "%+v", ranked)
		}
	}
}

// TestALifeMinuteByMinute follows one silent sandbox through time: too young,
// then, from the first moment over ten minutes, stuck for good.
func TestALifeMinuteByMinute(t *testing.T) {
	t.Parallel()
	s := old(0)
	sig := Signals{Logs: &LogFindings{Complete: true, Lines: 1, Last: noon()}}
	for second := range 1_200 {
		want := sandbox.False
		if second > 600 {
			want = sandbox.True
		}
		at := noon().Add(time.Duration(second) * time.Second)
		require.Equal(t, want, judgeStuck(s, sig, DefaultThresholds(), at).verdict, "second %d", second)
	}
}
