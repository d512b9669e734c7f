package triage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func causesOf(s sandbox.Sandbox, sig Signals) []Finding {
	t := DefaultThresholds()
	return Causes(Judge(s, sig, t, noon()), s, sig, t, noon())
}

// TestCausesSayWhyNot: the cause of the verdict is the first, and each other one says what speaks
// against it.
func TestCausesSayWhyNot(t *testing.T) {
	t.Parallel()
	busy := Signals{Looked: true, Logs: quietFor(time.Hour), Trend: &Trend{CPUPercent: new(100.0), OperationsRate: new(5000.0)}}
	hung := Signals{Looked: true, Logs: quietFor(time.Hour), Trend: &Trend{CPUPercent: new(0.0), Waiting: "tcp 10.0.0.1:443"}}
	dead := Signals{Looked: true, Answers: sandbox.False, Trend: &Trend{CPUPercent: new(0.0)}}
	for name, tc := range map[string]struct {
		sig  Signals
		want sandbox.Cause
	}{
		"loop": {busy, sandbox.CauseBusyLoop}, "hang": {hung, sandbox.CauseHungIO}, "no answer": {dead, sandbox.CauseNoAnswer},
	} {
		causes := causesOf(old(time.Hour), tc.sig)
		require.GreaterOrEqual(t, len(causes), 2, name)
		assert.Equal(t, tc.want, causes[0].Cause, name)
		assert.NotEmpty(t, causes[0].Evidence, name)
		assert.Empty(t, causes[0].WhyNot, name)
		for _, c := range causes[1:] {
			assert.NotEmpty(t, c.WhyNot, "%s: %s", name, c.ID)
		}
	}
	assert.Contains(t, causesOf(old(time.Hour), busy)[1].WhyNot, "not seen: CPU is idle (cpu 100%)")
}

// TestCausesOfAHealthySandboxAreNone: also where the cleanup of its profile does not run.
func TestCausesOfAHealthySandboxAreNone(t *testing.T) {
	t.Parallel()
	broken := &FleetSignals{CleanupRead: true, OverStuckAge: new(int64(9))}
	atWork := Signals{Looked: true, Logs: quietFor(time.Second), Trend: &Trend{CPUPercent: new(20.0)}, Fleet: broken}
	assert.Empty(t, causesOf(old(time.Hour), atWork))
	silent := atWork
	silent.Logs, silent.Trend = quietFor(time.Hour), &Trend{CPUPercent: new(0.0)}
	causes := causesOf(old(time.Hour), silent)
	assert.Equal(t, sandbox.CauseSilent, causes[0].Cause, "what it does precedes what ails its profile")
}

// TestAnErrorInARunThatSucceedsProvesNothing is S0-4 and S0-30.
func TestAnErrorInARunThatSucceedsProvesNothing(t *testing.T) {
	t.Parallel()
	logs := ReadLines(NewMatcher(), []sandbox.LogLine{{At: noon(), Text: "API error: Resource limit exceeded"}, {At: noon(), Text: "cleanup failed: sandbox not found"}})
	ended := func(class sandbox.Class, code int) sandbox.Sandbox {
		return with(old(time.Hour), func(s *sandbox.Sandbox) {
			s.State = sandbox.StateTerminated
			s.Exit = &sandbox.Exit{Code: &code, Class: class}
		})
	}
	assert.Empty(t, causesOf(ended(sandbox.ClassOK, 0), Signals{Looked: true, Logs: &logs}))
	assert.NotEmpty(t, Judge(ended(sandbox.ClassAgentError, 1), Signals{Looked: true, Logs: &logs}, DefaultThresholds(), noon()).Findings, "in one that failed it is a hint")
	flag := pick(t, Flags(ended(sandbox.ClassOK, 0), Signals{Logs: &logs}, DefaultThresholds(), noon()), "resource_warnings")
	assert.Equal(t, Info, flag.Severity)
}

// TestARecordThatSaysEndedOfWhatRuns is S1-60.
func TestARecordThatSaysEndedOfWhatRuns(t *testing.T) {
	t.Parallel()
	in := func(state sandbox.State) sandbox.Sandbox {
		return with(old(time.Hour), func(s *sandbox.Sandbox) { s.State = state })
	}
	for _, tc := range []struct {
		state   sandbox.State
		answers sandbox.Verdict
		want    sandbox.Verdict
	}{
		{sandbox.StateStopped, sandbox.True, sandbox.True},
		{sandbox.StateFailed, sandbox.True, sandbox.True},
		{sandbox.StateTerminated, sandbox.False, sandbox.False},
		{sandbox.StateTerminated, "", sandbox.Unknown},
		{sandbox.StateRunning, sandbox.True, sandbox.False},
		{sandbox.StateUnknown, sandbox.True, sandbox.Unknown},
	} {
		sig := Signals{Looked: true, Answers: tc.answers}
		assert.Equal(t, tc.want, pick(t, Flags(in(tc.state), sig, DefaultThresholds(), noon()), "runs_after_end").Verdict, "%v", tc)
	}
	causes := causesOf(in(sandbox.StateStopped), Signals{Looked: true, Answers: sandbox.True})
	require.NotEmpty(t, causes)
	assert.Equal(t, "state_corruption", causes[0].ID)
	assert.Equal(t, sandbox.Probable, causes[0].Confidence)
}

func TestFleetCauses(t *testing.T) {
	t.Parallel()
	limits := DefaultThresholds()
	for name, tc := range map[string]struct {
		sig  FleetSignals
		want []string
	}{
		"nothing known": {FleetSignals{}, nil},
		"healthy":       {FleetSignals{Active: new(int64(3)), OverProvisioningAge: new(int64(0)), CleanupRead: true, CleanupSeen: noon(), OverStuckAge: new(int64(0)), QuotaUsed: new(0.1)}, nil},
		"no cleanup":    {FleetSignals{CleanupRead: true, CleanupSeen: noon().Add(-time.Hour), OverStuckAge: new(int64(4))}, []string{"cleanup_not_running"}},
		"quota full":    {FleetSignals{QuotaUsed: new(0.97), CreateFailures: new(int64(3))}, []string{"resource_exhaustion"}},
		"none starts":   {FleetSignals{Active: new(int64(0)), OverProvisioningAge: new(int64(5)), CreateFailures: new(int64(1))}, []string{"resource_exhaustion"}},
		"not found":     {FleetSignals{CleanupNotFound: new(int64(2))}, []string{"state_corruption"}},
		"young ones":    {FleetSignals{Active: new(int64(0)), OverProvisioningAge: new(int64(0)), CreateFailures: new(int64(0))}, nil},
	} {
		var ids []string
		for _, c := range FleetCauses(tc.sig, nil, limits, noon()) {
			ids = append(ids, c.ID)
			assert.NotEmpty(t, c.Evidence, name)
		}
		assert.Equal(t, tc.want, ids, name)
	}
	differ := []Flag{{ID: "counts_differ", Verdict: sandbox.True, Evidence: []sandbox.Evidence{{What: "created minus destroyed", Value: "2"}}}}
	causes := FleetCauses(FleetSignals{}, differ, limits, noon())
	require.Len(t, causes, 1)
	assert.Equal(t, "state_corruption", causes[0].ID)
}

// TestMissedHeartbeats is S2-10.
func TestMissedHeartbeats(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state sandbox.State
		ago   time.Duration
		want  sandbox.Verdict
	}{
		{sandbox.StateRunning, 90 * time.Second, sandbox.False},
		{sandbox.StateRunning, 91 * time.Second, sandbox.True},
		{sandbox.StateRunning, -time.Minute, sandbox.Unknown},
		{sandbox.StatePaused, time.Hour, sandbox.False},
	} {
		s := with(old(time.Hour), func(s *sandbox.Sandbox) { s.State = tc.state })
		f := pick(t, Flags(s, Signals{LastBeatAt: noon().Add(-tc.ago)}, DefaultThresholds(), noon()), "heartbeats_missed")
		assert.Equal(t, tc.want, f.Verdict, "%v", tc)
	}
	assert.Equal(t, sandbox.Unknown, pick(t, Flags(old(time.Hour), Signals{}, DefaultThresholds(), noon()), "heartbeats_missed").Verdict)
}
