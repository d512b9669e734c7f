package triage

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func TestLikelyCauseOfEachScene(t *testing.T) {
	t.Parallel()
	all := scenes()
	want := map[string]struct {
		id         string
		cause      sandbox.Cause
		confidence sandbox.Confidence
	}{
		"process_limit":  {"process_limit", sandbox.CauseProcessLimit, sandbox.Probable},
		"busy_loop":      {"infinite_loop", sandbox.CauseBusyLoop, sandbox.Probable},
		"busy_repeating": {"infinite_loop", sandbox.CauseBusyLoop, sandbox.Probable},
		"busy_at_work":   {"infinite_loop", sandbox.CauseBusyLoop, sandbox.Hint},
		"busy_and_young": {"infinite_loop", sandbox.CauseBusyLoop, sandbox.Hint},
		"hung_io":        {"external_hang", sandbox.CauseHungIO, sandbox.Probable},
		"hung_remote":    {"external_hang", sandbox.CauseHungIO, sandbox.Probable},
		"silent":         {"silent", sandbox.CauseSilent, sandbox.Probable},
		"silent_blind":   {"silent", sandbox.CauseSilent, sandbox.Probable},
		"leak":           {"memory_leak", sandbox.CauseLeak, sandbox.Probable},
		"leak_killed":    {"exit", sandbox.CauseOOM, sandbox.Certain},
		"stopped":        {"exit", sandbox.CauseStopped, sandbox.Certain},
		"killed_unknown": {"", sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"no_task":        {"no_owner", sandbox.CauseOrphan, sandbox.Hint},
		"healthy":        {"", sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"healthy_idle":   {"", sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"nothing_known":  {"", sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"log_only":       {"", sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"record_only":    {"", sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"starting":       {"", sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"stuck_one":      {"", sandbox.CauseUnknown, sandbox.ConfidenceUnknown},
		"ghost":          {"state_corruption", sandbox.CauseGhost, sandbox.Probable},
		"cleanup_dead":   {"cleanup_not_running", sandbox.CauseOrphan, sandbox.Probable},
		"exhausted":      {"resource_exhaustion", sandbox.CauseUnknown, sandbox.Probable},
	}
	require.Len(t, want, len(all), "every scene has its answer")
	for name, w := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ranked := rankCauses(all[name].s, all[name].sig, DefaultThresholds(), noon())
			cause, confidence := likely(ranked)
			assert.Equal(t, w.cause, cause)
			assert.Equal(t, w.confidence, confidence)
			if w.id == "" {
				assert.Empty(t, ranked, "nothing speaks for anything")
				return
			}
			assert.Equal(t, w.id, ranked[0].ID)
		})
	}
}

func TestWeighing(t *testing.T) {
	t.Parallel()
	sign := func(weight int, v sandbox.Verdict) Symptom { return Symptom{Weight: weight, Verdict: v} }
	support := func(v sandbox.Verdict) Symptom { return Symptom{Weight: 2, Verdict: v, Support: true} }
	for name, tc := range map[string]struct {
		symptoms        []Symptom
		score, coverage float64
		confidence      sandbox.Confidence
	}{
		"nothing":          {nil, 0, 0, sandbox.ConfidenceUnknown},
		"all unknown":      {[]Symptom{sign(3, sandbox.Unknown)}, 0, 0, sandbox.ConfidenceUnknown},
		"all seen":         {[]Symptom{sign(3, sandbox.True), sign(1, sandbox.True)}, 1, 1, sandbox.Probable},
		"exactly likely":   {[]Symptom{sign(3, sandbox.True), sign(1, sandbox.False)}, 0.75, 1, sandbox.Probable},
		"just a hint":      {[]Symptom{sign(2, sandbox.True), sign(1, sandbox.False)}, 2. / 3, 1, sandbox.Hint},
		"exactly a hint":   {[]Symptom{sign(1, sandbox.True), sign(1, sandbox.False)}, 0.5, 1, sandbox.Hint},
		"less than a hint": {[]Symptom{sign(1, sandbox.True), sign(2, sandbox.False)}, 1. / 3, 1, sandbox.ConfidenceUnknown},
		"half is known":    {[]Symptom{sign(2, sandbox.True), sign(2, sandbox.Unknown)}, 1, 0.5, sandbox.Probable},
		"less than half":   {[]Symptom{sign(2, sandbox.True), sign(3, sandbox.Unknown)}, 1, 0.4, sandbox.Hint},
		"support seen":     {[]Symptom{sign(2, sandbox.False), support(sandbox.True)}, 0.5, 1, sandbox.Hint},
		"support not seen": {[]Symptom{sign(2, sandbox.True), support(sandbox.False)}, 1, 1, sandbox.Probable},
		"support unknown":  {[]Symptom{sign(2, sandbox.True), support(sandbox.Unknown)}, 1, 1, sandbox.Probable},
		"must is false":    {[]Symptom{sign(9, sandbox.True), asRequired(sign(1, sandbox.False))}, 0, 0, sandbox.ConfidenceUnknown},
		"key is seen":      {[]Symptom{asKey(sign(1, sandbox.True)), asKey(sign(1, sandbox.Unknown))}, 1, 0.5, sandbox.Probable},
		"key is unknown":   {[]Symptom{sign(9, sandbox.True), asKey(sign(1, sandbox.Unknown))}, 0, 0, sandbox.ConfidenceUnknown},
		"key is false":     {[]Symptom{sign(9, sandbox.True), asKey(sign(1, sandbox.False))}, 0, 0, sandbox.ConfidenceUnknown},
		"must is unknown":  {[]Symptom{sign(9, sandbox.True), asRequired(sign(1, sandbox.Unknown))}, 1, 0.9, sandbox.Probable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := scoreSymptoms(tc.symptoms)
			assert.InDelta(t, tc.score, got.Score, 1e-9)
			assert.InDelta(t, tc.coverage, got.Coverage, 1e-9)
			assert.Equal(t, tc.confidence, got.Confidence)
		})
	}
}

func TestUnknownInputsGiveNoTrue(t *testing.T) {
	t.Parallel()
	th := DefaultThresholds()
	unknown := Signals{Exists: sandbox.Unknown, Agrees: sandbox.Unknown, Finished: sandbox.Unknown, Answers: sandbox.Unknown}
	blanks := []Signals{{}, {Trend: &Trend{}}, {Trend: new(TrendOf(make([]sandbox.Usage, 3), th))}, {Fleet: &FleetSignals{}}, unknown}
	for _, state := range append(sandbox.States(), "") {
		s := sandbox.Sandbox{State: state, Activity: sandbox.Unknown}
		for _, sig := range blanks {
			assert.NotEqual(t, sandbox.True, judgeStuck(s, sig, th, noon()).verdict)
			for _, f := range Flags(s, sig, th, noon()) {
				assert.NotEqual(t, sandbox.True, f.Verdict, "%s in state %q", f.ID, state)
			}
			assert.Empty(t, rankCauses(s, sig, th, noon()), "state %q", state)
		}
	}
}

// TestForgettingNeverCondemns takes the age, and then every observation, away
// from the staged incidents.
func TestForgettingNeverCondemns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6)) // a seed that repeats
	th := DefaultThresholds()
	for name, sc := range scenes() {
		sc.s.Activity = sandbox.Unknown
		for range 20 {
			sc.s.CreatedAt = time.Time{}
			if r.IntN(2) == 0 {
				sc.s.CreatedAt = noon().Add(time.Duration(1+r.IntN(3600)) * time.Second)
			}
			require.NotEqual(t, sandbox.True, judgeStuck(sc.s, sc.sig, th, noon()).verdict, "%s: without an age nothing is stuck", name)
		}
		sc.s.CreatedAt = noon().Add(-time.Hour)
		sc.sig.Logs, sc.sig.Trend, sc.sig.Exists = nil, nil, sandbox.Unknown
		if sc.s.State == sandbox.StateRunning {
			require.Equal(t, sandbox.Unknown, judgeStuck(sc.s, sc.sig, th, noon()).verdict, "%s: age alone condemns nothing", name)
		}
		for _, f := range rankCauses(sc.s, sc.sig, th, noon()) {
			require.True(t, f.ID == "exit" || f.Confidence != sandbox.Certain)
		}
	}
}

func TestExitStandsFirstWhateverElseSpeaks(t *testing.T) {
	t.Parallel()
	sc := scenes()["busy_loop"]
	sc.s.Exit = &sandbox.Exit{Cause: sandbox.CauseOOM, Confidence: sandbox.Hint}
	ranked := rankCauses(sc.s, sc.sig, DefaultThresholds(), noon())
	assert.Equal(t, sandbox.CauseOOM, ranked[0].Cause)
	assert.Equal(t, sandbox.Hint, ranked[0].Confidence, "and it stays as sure as it was")
	assert.Greater(t, len(ranked), 1)
}

func TestEveryPossibleCauseIsReachable(t *testing.T) {
	t.Parallel()
	reached := map[string]bool{}
	for _, sc := range scenes() {
		for _, f := range rankCauses(sc.s, sc.sig, DefaultThresholds(), noon()) {
			reached[f.ID] = true
		}
	}
	for _, th := range causeRules() {
		assert.True(t, reached[th.id], th.id)
	}
}

// likely is the cause at the top of a ranking, if it is at least a hint.
func likely(ranked []Finding) (sandbox.Cause, sandbox.Confidence) {
	if len(ranked) == 0 || ranked[0].Confidence == sandbox.ConfidenceUnknown {
		return sandbox.CauseUnknown, sandbox.ConfidenceUnknown
	}
	return ranked[0].Cause, ranked[0].Confidence
}
