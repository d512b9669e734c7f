package triage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"sbx/internal/sandbox"
)

// sampled are samples a step apart up to noon, each with this share of the
// processor and of a memory of 1000 MiB.
func sampled(n int, step time.Duration, cpuPercent, fromMiB, toMiB float64) *Trend {
	limit := int64(1000 * sandbox.MiB)
	var all []sandbox.Usage
	for i := range n {
		mib := fromMiB + (toMiB-fromMiB)*float64(i)/float64(max(1, n-1))
		all = append(all, sandbox.Usage{
			At: noon().Add(-time.Duration(n-1-i) * step), Source: "metrics API",
			CPUPercent: new(cpuPercent), MemoryBytes: new(int64(mib * sandbox.MiB)), MemoryLimitBytes: &limit,
		})
	}
	return new(TrendOf(all, DefaultThresholds()))
}

// TestWhatCannotShowWorkProvesNoSilence covers sources that would not show that a program
// works: an hour without a sign from them is no evidence.
func TestWhatCannotShowWorkProvesNoSilence(t *testing.T) {
	t.Parallel()
	hour := time.Hour
	partial := func(lines int, ago time.Duration) *LogFindings {
		f := &LogFindings{Lines: lines}
		if lines > 0 {
			f.Last = noon().Add(-ago)
		}
		return f
	}
	basis := func(b sandbox.ActivityBasis) sandbox.Sandbox {
		return with(old(hour), func(s *sandbox.Sandbox) { s.LastActivityAt, s.ActivityBasis = noon().Add(-hour), b })
	}
	steps := 61 // five minutes of samples every 5 s
	for name, tc := range map[string]struct {
		s    sandbox.Sandbox
		sig  Signals
		want sandbox.Verdict
		say  string
	}{
		"a log of the agent's host, old":        {old(hour), Signals{Logs: partial(3, hour)}, sandbox.Unknown, "activity_unknown"},
		"the same, empty":                       {old(hour), Signals{Logs: partial(0, 0)}, sandbox.Unknown, "activity_unknown"},
		"the same, with a line just now":        {old(hour), Signals{Logs: partial(3, time.Second)}, sandbox.False, "shows_life"},
		"calls of clients, old":                 {basis(sandbox.BasisRequests), Signals{}, sandbox.Unknown, "activity_unknown"},
		"a time whose basis is not known":       {basis(sandbox.BasisUnknown), Signals{}, sandbox.Unknown, "activity_unknown"},
		"reports of the agent, an hour old":     {basis(sandbox.BasisReports), Signals{ReportedSilence: hour}, sandbox.True, "age, silent"},
		"the same, whose heartbeats ended then": {basis(sandbox.BasisReports), Signals{ReportedSilence: time.Minute}, sandbox.Unknown, "activity_unknown"},
		"the same, by a clock an hour behind":   {basis(sandbox.BasisReports), Signals{ReportedSilence: 5 * time.Second}, sandbox.Unknown, "activity_unknown"},
		"the same, without a heartbeat":         {basis(sandbox.BasisReports), Signals{}, sandbox.Unknown, "activity_unknown"},
		"within a long call of a tool":          {with(basis(sandbox.BasisReports), worked(14*time.Minute)), Signals{Trend: trend(0, -1, "")}, sandbox.Unknown, "activity_unknown, hung_io"},
		"a build within a call of a tool":       {with(basis(sandbox.BasisReports), worked(6*time.Minute)), Signals{Trend: trend(100, -1, "")}, sandbox.False, "shows_life"},
		"calls, old, and a complete log, old":   {basis(sandbox.BasisRequests), Signals{Logs: quietFor(hour)}, sandbox.True, "age, silent"},
		"calls, old, and lines without times":   {basis(sandbox.BasisRequests), Signals{Logs: &LogFindings{Complete: true, Lines: 9}}, sandbox.Unknown, "activity_unknown"},
		"calls, old, and an empty log":          {basis(sandbox.BasisRequests), Signals{Logs: &LogFindings{Complete: true}}, sandbox.True, "age, silent"},
		"a call just now, lines without times": {
			with(basis(sandbox.BasisRequests), worked(time.Second)), Signals{Logs: &LogFindings{Complete: true, Lines: 9}}, sandbox.False, "shows_life",
		},
		"reports, recent, and lines without times": {
			with(basis(sandbox.BasisReports), worked(14*time.Minute)), Signals{Logs: &LogFindings{Complete: true, Lines: 9}}, sandbox.Unknown, "activity_unknown",
		},
		"busy, calls, old, and lines without times": {
			basis(sandbox.BasisRequests), Signals{Logs: &LogFindings{Complete: true, Lines: 9}, Trend: trend(100, -1, "")}, sandbox.False, "shows_life",
		},
		"repeating lines of the host": {old(hour), Signals{Logs: &LogFindings{Lines: 50, Last: noon().Add(-hour), Repeat: Repeat{"Starting", 50}}, Trend: trend(100, -1, "")}, sandbox.False, "shows_life"},

		"rests beside a live process":   {old(hour), Signals{Logs: partial(0, 0), Trend: sampled(steps, 5*time.Second, 0, 100, 100), Processes: new(1)}, sandbox.Unknown, "activity_unknown, hung_io"},
		"a live process":                {old(hour), Signals{Processes: new(1)}, sandbox.Unknown, "activity_unknown"},
		"faint work against a proof":    {old(hour), Signals{Logs: quietFor(hour), Trend: sampled(2, time.Second, 1.3, 100, 100)}, sandbox.True, "age, silent"},
		"work against a proof":          {old(hour), Signals{Logs: quietFor(hour), Trend: sampled(2, time.Second, 6, 100, 100)}, sandbox.False, "shows_life"},
		"faint work without a proof":    {old(hour), Signals{Logs: partial(0, 0), Trend: sampled(2, time.Second, 1.3, 100, 100)}, sandbox.False, "shows_life"},
		"a leak with faint work":        {old(hour), Signals{Logs: partial(0, 0), Trend: sampled(61, 5*time.Second, 0.9, 500, 950)}, sandbox.True, "age, leak"},
		"the same, a little more":       {old(hour), Signals{Logs: partial(0, 0), Trend: sampled(61, 5*time.Second, 1.2, 500, 950)}, sandbox.True, "age, leak"},
		"no process":                    {old(hour), Signals{Processes: new(0)}, sandbox.Unknown, "activity_unknown"},
		"busy in two samples":           {old(hour), Signals{Trend: trend(100, -1, "")}, sandbox.False, "shows_life"},
		"busy for the whole window":     {old(hour), Signals{Trend: sampled(steps, 5*time.Second, 100, 100, 100), Processes: new(1)}, sandbox.True, "age, busy_loop"},
		"busy for less than the window": {old(hour), Signals{Trend: sampled(steps-1, 5*time.Second, 100, 100, 100)}, sandbox.False, "shows_life"},
		"busy for the window, a sign in it": {
			old(hour), Signals{Logs: partial(3, 4*time.Minute), Trend: sampled(steps, 5*time.Second, 100, 100, 100)}, sandbox.False, "shows_life",
		},
		"busy, with a gap in the samples": {old(hour), Signals{Trend: sampled(3, 150*time.Second, 100, 100, 100)}, sandbox.False, "shows_life"},
		"memory grows, near its limit":    {old(hour), Signals{Trend: sampled(steps, 5*time.Second, 0, 800, 950)}, sandbox.True, "age, leak"},
		"memory grows, far from it":       {old(hour), Signals{Trend: sampled(steps, 5*time.Second, 0, 100, 300)}, sandbox.Unknown, "activity_unknown"},
		"memory grows, and it works":      {old(hour), Signals{Trend: sampled(steps, 5*time.Second, 40, 800, 950)}, sandbox.False, "shows_life"},
		"it does not respond":             {old(hour), Signals{Answers: sandbox.False}, sandbox.True, "age, no_answer"},
		"nobody could ask":                {old(hour), Signals{Answers: sandbox.Unknown}, sandbox.Unknown, "activity_unknown"},
		"no answer, but it writes":        {old(hour), Signals{Answers: sandbox.False, Logs: quietFor(time.Second)}, sandbox.False, "shows_life"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.sig.Looked = true
			got := judgeStuck(tc.s, tc.sig, DefaultThresholds(), noon())
			assert.Equal(t, tc.want, got.verdict, got.evidence)
			assert.Equal(t, tc.say, joinReasons(got.reasons))
		})
	}
}

// TestSignsOfLifeNameNoUnansweredProbe: "it is active (..., answers no)" contradicts itself.
func TestSignsOfLifeNameNoUnansweredProbe(t *testing.T) {
	t.Parallel()
	s, dead := old(time.Hour), Signals{Looked: true, Answers: sandbox.False}
	active := dead
	active.Logs = quietFor(time.Second)
	lives, _, evidence := judgeLife(s, active, DefaultThresholds(), noon())
	assert.Equal(t, sandbox.True, lives)
	assert.NotContains(t, formatEvidence(evidence), "answers")
	lives, _, evidence = judgeLife(s, dead, DefaultThresholds(), noon())
	assert.Equal(t, sandbox.False, lives)
	assert.Contains(t, formatEvidence(evidence), "answers no")
}

func worked(ago time.Duration) func(*sandbox.Sandbox) {
	return func(s *sandbox.Sandbox) { s.LastActivityAt = noon().Add(-ago) }
}

func TestSilenceOfAPartialSourceIsNoFlag(t *testing.T) {
	t.Parallel()
	s := with(old(time.Hour), func(s *sandbox.Sandbox) {
		s.LastActivityAt, s.ActivityBasis = noon().Add(-time.Hour), sandbox.BasisRequests
	})
	assert.Equal(t, sandbox.Unknown, flagSilent(s, Signals{}, DefaultThresholds(), noon()).Verdict)
	s.LastActivityAt = noon()
	assert.Equal(t, sandbox.False, flagSilent(s, Signals{}, DefaultThresholds(), noon()).Verdict)
}
