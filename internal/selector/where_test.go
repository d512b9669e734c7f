package selector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

func lookOf(cpu float64) *Figures {
	return &Figures{Trend: triage.Trend{CPUPercent: &cpu, MemoryBytes: new(int64(100 << 20))}, Last: sandbox.Usage{Operations: new(int64(7))}}
}

// TestWhereReadsARecordAndALook: a value that only a look tells is unknown before one, and what
// the look does not report is unknown after it.
func TestWhereReadsARecordAndALook(t *testing.T) {
	t.Parallel()
	record := sandbox.Sandbox{Provider: "prod", ID: "x", State: sandbox.StateRunning, CreatedAt: noon().Add(-time.Hour), Owner: "me", Labels: map[string]string{"team": "a"}}
	firstSeen := sandbox.Sandbox{State: sandbox.StateRunning, FirstSeenAt: noon().Add(-time.Hour)}
	future := sandbox.Sandbox{State: sandbox.StateRunning, CreatedAt: noon().Add(time.Hour)}
	limited := sandbox.Sandbox{State: sandbox.StateRunning, Limits: sandbox.Limits{MemoryBytes: new(int64(512 << 20))}}
	ended := sandbox.Sandbox{State: sandbox.StateFailed, Exit: &sandbox.Exit{Code: new(3)}}
	for _, tc := range []struct {
		where string
		box   sandbox.Sandbox
		usage *Figures
		want  sandbox.Verdict
		why   string
	}{
		{"age_seconds == 1h", record, nil, sandbox.True, "age_seconds == 1h: 1h == 1h true"},
		{`owner == "me" and labels.team != "b"`, record, nil, sandbox.True, `owner == "me": "me" == "me" true; labels.team != "b": "a" != "b" true`},
		{"age_seconds > 30m", firstSeen, nil, sandbox.True, "age_seconds > 30m: at least 1h > 30m true"},
		{"age_seconds < 2h", firstSeen, nil, sandbox.Unknown, "age_seconds is known only as a lower bound"},
		{"age_seconds > 30m", future, nil, sandbox.Unknown, "age_seconds is unknown: its creation time is in the future"},
		{"age_seconds == nil", future, nil, sandbox.Unknown, "age_seconds is unknown: its creation time is in the future"},
		{"cpu_percent < 5%", record, nil, sandbox.Unknown, "cpu_percent is unknown: not looked at"},
		{"cpu_percent == nil", record, nil, sandbox.Unknown, "cpu_percent is unknown: not looked at"},
		{"cpu_percent < 5%", record, lookOf(2), sandbox.True, "cpu_percent < 5%: 2% < 5% true"},
		{"cpu_percent < 5%", record, &Figures{}, sandbox.Unknown, "cpu_percent is not reported"},
		{"cpu_percent == nil", record, &Figures{}, sandbox.True, "cpu_percent == nil: not reported true"},
		{"usage.memory_mb == 100M and operations == 7", record, lookOf(2), sandbox.True, ""},
		{"memory_limit_mb == 512M", limited, nil, sandbox.True, ""},
		{"memory_limit_mb == 512M", limited, lookOf(2), sandbox.True, ""},
		{"memory_limit_mb > 1M", record, nil, sandbox.Unknown, "memory_limit_mb is unknown: not looked at"},
		{"memory_limit_mb > 1M", record, lookOf(2), sandbox.Unknown, "memory_limit_mb is not reported"},
		{"idle_seconds > 1m", record, nil, sandbox.Unknown, "idle_seconds is unknown: not looked at"},
		{"idle_seconds == nil", record, lookOf(2), sandbox.True, ""},
		{"stuck", record, nil, sandbox.Unknown, "stuck is unknown: not looked at"},
		{"stuck or not stuck", record, lookOf(2), sandbox.Unknown, "stuck is not reported"},
		{"exit_code == 3 and cpu == nil", ended, nil, sandbox.True, ""},
		{"exit_code != 0", record, nil, sandbox.Unknown, "exit_code is not reported"},
	} {
		w, err := ParseWhere(tc.where)
		require.NoError(t, err)
		s := Selector{Where: w, All: true}
		m := s.Judge(tc.box, Facts{Now: noon(), Judged: func(sandbox.Sandbox) (triage.Verdict, *Figures) {
			return triage.Verdict{Stuck: sandbox.Unknown, Activity: sandbox.Unknown}, tc.usage
		}})
		assert.Equal(t, tc.want, m.Verdict, tc.where)
		if tc.why != "" {
			assert.Equal(t, tc.why, m.Reason, tc.where)
		}
	}
}

// TestWhatTheVerdictSaysIsUnknownBeforeALook: a record that does not decide has the cause
// "unknown", which must not read as "no busy loop": nobody would look.
func TestWhatTheVerdictSaysIsUnknownBeforeALook(t *testing.T) {
	t.Parallel()
	record := sandbox.Sandbox{Provider: "prod", ID: "x", State: sandbox.StateRunning, CreatedAt: noon().Add(-time.Hour)}
	verdict := triage.Judge(record, triage.Signals{}, triage.DefaultThresholds(), noon())
	require.True(t, verdict.NeedsLook())
	for _, where := range []string{`cause == "busy_loop"`, `likely_cause == "leak"`, `stuck_reason == "age"`, `confidence == "probable"`, `pattern == "idle"`} {
		w, err := ParseWhere(where)
		require.NoError(t, err)
		m := Selector{Where: w, All: true}.Judge(record, Facts{Now: noon(), Judged: func(sandbox.Sandbox) (triage.Verdict, *Figures) { return verdict, nil }})
		assert.Equal(t, sandbox.Unknown, m.Verdict, where)
		assert.Contains(t, m.Reason, "not looked at", where)
	}
}

// TestWhatEndedCountsOnlyWhereTheConditionHolds: `ls --all` would show nothing more of the others.
func TestWhatEndedCountsOnlyWhereTheConditionHolds(t *testing.T) {
	t.Parallel()
	ended := sandbox.Sandbox{State: sandbox.StateTerminated, Name: "a"}
	for where, want := range map[string]string{`name == "a"`: FilterEnded, `name == "b"`: FilterWhere, `cpu_percent < 5%`: FilterWhere} {
		w, err := ParseWhere(where)
		require.NoError(t, err)
		m := Selector{Where: w}.Judge(ended, Facts{Now: noon()})
		assert.Equal(t, Match{Verdict: sandbox.False, Filter: want, Reason: m.Reason}, m)
	}
}

func TestTemplateAndExitCode(t *testing.T) {
	t.Parallel()
	exited := sandbox.Sandbox{State: sandbox.StateFailed, Template: "base", Exit: &sandbox.Exit{Code: new(3)}}
	lost := sandbox.Sandbox{State: sandbox.StateFailed}
	for _, tc := range []struct {
		options Options
		box     sandbox.Sandbox
		want    sandbox.Verdict
	}{
		{Options{Template: new("base")}, exited, sandbox.False}, // it has ended, and --all was not given
		{Options{Template: new("base"), All: true}, exited, sandbox.True},
		{Options{Template: new("other"), All: true}, exited, sandbox.False},
		{Options{ExitCode: new(3)}, exited, sandbox.True},
		{Options{ExitCode: new(0)}, exited, sandbox.False},
		{Options{ExitCode: new(0)}, lost, sandbox.Unknown},
		{Options{ExitCode: new(0)}, sandbox.Sandbox{State: sandbox.StateRunning}, sandbox.False},
	} {
		s, err := Compile(tc.options)
		require.NoError(t, err)
		assert.Equal(t, tc.want, s.Judge(tc.box, Facts{Now: noon()}).Verdict, "%+v", tc)
	}
}
