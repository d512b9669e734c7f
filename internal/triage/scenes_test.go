package triage

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene is one staged incident.
type scene struct {
	s   sandbox.Sandbox
	sig Signals
}

func owned(s sandbox.Sandbox) sandbox.Sandbox {
	s.TaskID = "t-1"
	return s
}

func scenes() map[string]scene {
	hour := time.Hour
	busy := trend(100, 5000, "")
	slept := &LogFindings{Complete: true, Lines: 4, Last: noon().Add(-hour)}
	growing := new(TrendOf([]sandbox.Usage{mem(0, 100), mem(30, 200), mem(60, 300), cpu(0, 0), cpu(60, 58)}, DefaultThresholds()))
	growing.MemoryLimitBytes = new(int64(450 * sandbox.MiB))
	exit := func(e sandbox.Exit) sandbox.Sandbox {
		return with(owned(old(hour)), func(s *sandbox.Sandbox) { s.State, s.Exit = sandbox.StateFailed, &e })
	}
	oom := sandbox.Exit{Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM, Confidence: sandbox.Certain, Evidence: []sandbox.Evidence{{What: "oom_kill", Value: "1"}}}
	crowded := with(owned(old(time.Minute)), func(s *sandbox.Sandbox) { s.Limits.PIDs = new(int64(30)) })
	refused := new(TrendOf([]sandbox.Usage{{At: noon(), Tasks: new(int64(30)), TasksRefused: new(int64(3)), Source: "cgroup2"}}, DefaultThresholds()))
	return map[string]scene{
		"process_limit":  {crowded, Signals{Logs: quietFor(0), Trend: refused}},
		"busy_loop":      {owned(old(hour)), Signals{Logs: slept, Trend: busy, TracksTasks: true}},
		"busy_repeating": {owned(old(hour)), Signals{Logs: &LogFindings{Complete: true, Lines: 500, Last: noon(), Repeat: Repeat{"again", 50}}, Trend: trend(100, -1, "")}},
		"busy_at_work":   {owned(old(hour)), Signals{Logs: &LogFindings{Complete: true, Lines: 500, Last: noon(), Repeat: Repeat{"x", 1}}, Trend: busy}},
		"busy_and_young": {owned(old(time.Minute)), Signals{Logs: &LogFindings{Complete: true, Lines: 5, Last: noon()}, Trend: busy}},
		"hung_io":        {owned(old(hour)), Signals{Logs: slept, Trend: trend(0, -1, "tcp 10.0.0.1:443")}},
		"hung_remote":    {owned(old(hour)), Signals{Logs: &LogFindings{Complete: true, Lines: 4, Last: noon().Add(-hour), Calling: true, Call: "api.example.com"}, Trend: trend(0, -1, "")}},
		"silent":         {owned(old(hour)), Signals{Logs: slept, Trend: trend(0, 0, "sleep")}},
		"silent_blind":   {owned(old(hour)), Signals{Logs: slept, Trend: trend(0, 0, "")}},
		"leak":           {owned(old(hour)), Signals{Logs: quietFor(0), Trend: growing}},
		"leak_killed":    {exit(oom), Signals{Logs: quietFor(0), Trend: growing}},
		"stopped":        {exit(sandbox.Exit{Class: sandbox.ClassKilledByUs, Cause: sandbox.CauseStopped, Confidence: sandbox.Certain}), Signals{}},
		"killed_unknown": {exit(sandbox.Exit{Class: sandbox.ClassKilledUnknown, Cause: sandbox.CauseUnknown, Confidence: sandbox.ConfidenceUnknown}), Signals{}},
		"no_task":        {old(hour), Signals{Logs: quietFor(0), Trend: trend(3, -1, ""), TracksTasks: true}},
		"healthy":        {owned(old(hour)), Signals{Logs: &LogFindings{Complete: true, Lines: 9, Last: noon(), Repeat: Repeat{"x", 2}}, Trend: trend(5, -1, ""), TracksTasks: true}},
		"healthy_idle":   {owned(old(hour)), Signals{Logs: quietFor(time.Second), Trend: trend(0, -1, ""), TracksTasks: true}},
		"log_only":       {owned(old(hour)), Signals{Logs: quietFor(0)}},
		"record_only":    {with(old(hour), func(s *sandbox.Sandbox) { s.Activity = sandbox.False }), Signals{}},
		"starting": {with(owned(old(time.Second)), func(s *sandbox.Sandbox) { s.State = sandbox.StateProvisioning }), Signals{
			Fleet: &FleetSignals{Active: new(int64(0)), Provisioning: new(int64(1)), OverStuckAge: new(int64(0))},
		}},
		"stuck_one":     {owned(old(hour)), Signals{Fleet: &FleetSignals{OverStuckAge: new(int64(1)), Active: new(int64(1)), Provisioning: new(int64(0))}}},
		"nothing_known": {sandbox.Sandbox{}, Signals{}},
		"ghost":         {owned(old(hour)), Signals{Exists: sandbox.False, Agrees: sandbox.False}},
		"cleanup_dead": {owned(old(hour)), Signals{Fleet: &FleetSignals{
			OverStuckAge: new(int64(9)), CleanupRead: true, CleanupSeen: noon().Add(-hour),
			History: []ActiveCount{{noon().Add(-hour), 3}, {noon(), 12}},
		}}},
		"exhausted": {with(owned(old(hour)), func(s *sandbox.Sandbox) { s.State = sandbox.StateProvisioning }), Signals{
			Logs:  &LogFindings{Complete: true, Lines: 1, Last: noon(), Hits: []Hit{{Pattern: Pattern{ID: "resource_limit"}, Count: 1, Sample: "Resource limit exceeded"}}},
			Fleet: &FleetSignals{Active: new(int64(0)), Provisioning: new(int64(4)), CreateFailures: new(int64(2))},
		}},
	}
}

// TestSceneGoldens holds what is said of every scene, word for word.
func TestSceneGoldens(t *testing.T) {
	t.Parallel()
	for name, sc := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := render(t, sc)
			file := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

func render(t *testing.T, sc scene) string {
	t.Helper()
	th := DefaultThresholds()
	var b strings.Builder
	line := func(v ...any) {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		b.Write(append(text, '\n'))
	}
	stuck := judgeStuck(sc.s, sc.sig, th, noon())
	line("stuck", stuck.verdict, joinReasons(stuck.reasons), stuck.evidence)
	v := Judge(sc.s, sc.sig, th, noon())
	line("verdict", v.Stuck, v.Activity, v.Cause, v.Confidence, v.Pattern, v.Reason)
	for _, f := range Flags(sc.s, sc.sig, th, noon()) {
		line("flag", f.ID, f.Severity, f.Verdict, f.Say, f.Evidence)
	}
	for _, c := range rankCauses(sc.s, sc.sig, th, noon()) {
		line("cause", c.ID, c.Cause, c.Title, FormatDecimal(c.Score), FormatDecimal(c.Coverage), c.Confidence)
		for _, s := range c.Symptoms {
			line("symptom", s.Say, s.Weight, s.Verdict, s.Evidence)
		}
	}
	return b.String()
}
