package triage

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// TestATrendOfMemoryNeedsTime: what a program allocates between two looks is no slope.
func TestATrendOfMemoryNeedsTime(t *testing.T) {
	t.Parallel()
	th := DefaultThresholds()
	short := TrendOf([]sandbox.Usage{mem(0, 100), mem(0.3, 130)}, th)
	assert.Nil(t, short.MemorySlope)
	assert.True(t, short.TooShort)
	assert.Nil(t, TrendOf([]sandbox.Usage{mem(0, 100), mem(4.9, 130)}, th).MemorySlope)
	long := TrendOf([]sandbox.Usage{mem(0, 100), mem(5, 130)}, th)
	assert.InDelta(t, 360, *long.MemorySlope, 0.01)
	assert.False(t, long.TooShort)
}

// limited are samples of memory, each step apart, below a limit.
func limited(limit float64, step float64, mib ...float64) []sandbox.Usage {
	var out []sandbox.Usage
	for i, m := range mib {
		u := mem(float64(i)*step, m)
		u.MemoryLimitBytes, u.CPUPercent = new(int64(limit*sandbox.MiB)), new(0.2)
		out = append(out, u)
	}
	return out
}

func TestNeedsLongerLook(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		samples []sandbox.Usage
		want    bool
	}{
		"soon full":            {limited(512, 0.3, 400, 401), true},
		"still soon full":      {limited(512, 1, 400, 403, 406, 409), true},
		"long enough":          {limited(512, 1, 400, 403, 406, 409, 412, 415), false},
		"far from full":        {limited(100_000, 0.3, 400, 401), false},
		"stands":               {limited(512, 0.3, 500, 500), false},
		"no limit":             {[]sandbox.Usage{mem(0, 400), mem(0.3, 401)}, false},
		"one sample":           {limited(512, 0.3, 400), false},
		"falls after its rise": {limited(512, 0.3, 400, 460, 380), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, NeedsLongerLook(tc.samples))
		})
	}
}

// TestVerdictOfMemory: a leak is growth and how much is left, and says when it is full.
func TestVerdictOfMemory(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		samples    []sandbox.Usage
		cause      sandbox.Cause
		confidence sandbox.Confidence
		says       string
	}{
		"at +200 MiB/min":              {limited(512, 15, 312, 362), sandbox.CauseLeak, sandbox.Probable, "full in about 45s"},
		"at 95 %, slowly":              {limited(512, 60, 470, 475, 480, 487), sandbox.CauseLeak, sandbox.Probable, "it has a memory leak"},
		"at 95 %, and stands":          {limited(512, 60, 487, 487, 487, 487), sandbox.CauseNone, sandbox.ConfidenceUnknown, "not stuck"},
		"grows, with much left":        {limited(100_000, 60, 300, 312, 324, 336), sandbox.CauseNone, sandbox.ConfidenceUnknown, "not stuck"},
		"grows, and the limit unknown": {[]sandbox.Usage{mem(0, 100), mem(60, 300)}, sandbox.CauseLeak, sandbox.Hint, "it has a memory leak"},
		"two looks 0.3 s apart":        {limited(512, 0.3, 400, 430), sandbox.CauseNone, sandbox.ConfidenceUnknown, "not stuck"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sig := Signals{Trend: new(TrendOf(tc.samples, DefaultThresholds())), Processes: new(1)}
			v := Judge(old(5*time.Minute), sig, DefaultThresholds(), noon())
			assert.Equal(t, tc.cause, v.Cause, v.Reason)
			assert.Equal(t, tc.confidence, v.Confidence)
			assert.Contains(t, v.Reason, tc.says)
			assert.Equal(t, tc.cause == sandbox.CauseLeak, v.Pattern == PatternLeak)
			assert.Equal(t, sandbox.False, v.Stuck)
		})
	}
}

// TestAnIdleMachineIsNotHung: what has just booted waits for work.
func TestAnIdleMachineIsNotHung(t *testing.T) {
	t.Parallel()
	sig := Signals{Trend: trend(0, -1, ""), Processes: new(0)}
	young := Judge(old(time.Minute), sig, DefaultThresholds(), noon())
	assert.Equal(t, sandbox.CauseNone, young.Cause)
	assert.Equal(t, PatternIdle, young.Pattern)
	aged := Judge(old(time.Hour), sig, DefaultThresholds(), noon())
	assert.Equal(t, sandbox.CauseHungIO, aged.Cause, aged.Reason)
	assert.Equal(t, sandbox.Hint, aged.Confidence, "R48 is a reading, no proof")
	assert.True(t, aged.Unjudged())
	assert.Equal(t, PatternHungIO, aged.Pattern)
}

// TestABusyLoopInATenthOfACore: the limit of the processor is the sandbox's own.
func TestABusyLoopInATenthOfACore(t *testing.T) {
	t.Parallel()
	s := with(old(time.Hour), func(s *sandbox.Sandbox) { s.Limits.CPU = new(0.1) })
	th := ThresholdBook{Default: DefaultThresholds()}.For(s)
	sig := Signals{Logs: quietFor(30 * time.Minute), Trend: new(TrendOf(at2(9.7, -1, ""), th))}
	v := Judge(s, sig, th, noon())
	assert.Equal(t, sandbox.True, v.Stuck)
	assert.Equal(t, sandbox.CauseBusyLoop, v.Cause)
	free := old(time.Hour)
	assert.Equal(t, sandbox.False, Judge(free, sig, ThresholdBook{Default: DefaultThresholds()}.For(free), noon()).Stuck, "9.7 % of a core that it may use whole")
}

// TestTheRecordAloneCondemnsNothingThatRuns: a look might show that it works.
func TestTheRecordAloneCondemnsNothingThatRuns(t *testing.T) {
	t.Parallel()
	s := with(old(time.Hour), func(s *sandbox.Sandbox) {
		s.LastActivityAt, s.ActivityBasis = noon().Add(-time.Hour), sandbox.BasisOutput
	})
	unseen := Judge(s, Signals{}, DefaultThresholds(), noon())
	assert.Equal(t, sandbox.Unknown, unseen.Stuck)
	assert.True(t, unseen.NeedsLook())
	assert.True(t, unseen.Unjudged())
	assert.False(t, unseen.Looked)
	failed := Judge(s, Signals{Looked: true}, DefaultThresholds(), noon())
	assert.Equal(t, sandbox.True, failed.Stuck, "the record proves it, and no look contradicts")
	assert.False(t, failed.NeedsLook())
}

func TestWhatSbxKeepsIsNotStuck(t *testing.T) {
	t.Parallel()
	sig := Signals{Logs: quietFor(time.Hour), Trend: trend(0, 0, "sleep")}
	keep := func(until time.Duration) Verdict {
		s := with(old(2*time.Hour), func(s *sandbox.Sandbox) { s.KeptUntil = noon().Add(until) })
		return Judge(s, sig, DefaultThresholds(), noon())
	}
	kept := keep(time.Minute)
	assert.Equal(t, sandbox.False, kept.Stuck)
	assert.Equal(t, sandbox.CauseNone, kept.Cause)
	assert.Contains(t, kept.Reason, "sbx keeps it on purpose until 2026-01-02T12:01:00Z")
	assert.Equal(t, sandbox.True, keep(-time.Second).Stuck, "its time is over")
}

// TestJudgeGoesByTheClockOfTheSandbox: a machine whose clock is ahead makes nothing old.
func TestJudgeGoesByTheClockOfTheSandbox(t *testing.T) {
	t.Parallel()
	s := with(old(15*time.Minute), func(s *sandbox.Sandbox) { s.ClockSkew = -15 * time.Minute })
	sig := Signals{Logs: &LogFindings{Complete: true, Lines: 1, Last: noon().Add(-15 * time.Minute)}}
	v := Judge(s, sig, DefaultThresholds(), noon())
	assert.Equal(t, sandbox.False, v.Stuck, v.Reason)
	assert.Equal(t, sandbox.True, v.Activity)
	s.ClockSkew = 0
	assert.Equal(t, sandbox.True, Judge(s, sig, DefaultThresholds(), noon()).Stuck)
	s.ClockSkew = 15 * time.Minute
	assert.Equal(t, sandbox.True, Judge(s, sig, DefaultThresholds(), noon()).Stuck, "the clock that is behind counts")
}

// TestEveryVerdictIsWhole holds for any sandbox with any signals.
func TestEveryVerdictIsWhole(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(13, 14)) // a seed that repeats
	for range 20_000 {
		s, sig := guess(r)
		v := Judge(s, sig, DefaultThresholds(), noon())
		assert.NotEmpty(t, v.Reason)
		assert.NotEmpty(t, v.Reasons)
		assert.NotEmpty(t, v.Pattern)
		assert.Contains(t, []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown}, v.Stuck)
		assert.Contains(t, []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown}, v.Activity)
		assert.False(t, v.Stuck == sandbox.True && v.Cause == sandbox.CauseNone, "what is stuck has a cause, or an unknown one")
		assert.False(t, v.Stuck == sandbox.True && v.Activity == sandbox.True, "%v", v)
		if t.Failed() {
			t.FailNow()
		}
	}
}
