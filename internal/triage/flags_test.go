package triage

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
)

func pick(t *testing.T, flags []Flag, id string) Flag {
	t.Helper()
	for _, f := range flags {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no flag %s", id)
	return Flag{}
}

func TestFlagsOfOneSandbox(t *testing.T) {
	t.Parallel()
	hour := time.Hour
	in := func(state sandbox.State, age time.Duration) sandbox.Sandbox {
		return with(old(age), func(s *sandbox.Sandbox) { s.State = state })
	}
	warned := &LogFindings{Complete: true, Lines: 1, Hits: []Hit{{Pattern: Pattern{ID: "enomem", Resource: true}, Count: 1}}}
	other := &LogFindings{Complete: true, Lines: 1, Hits: []Hit{{Pattern: Pattern{ID: "auth"}, Count: 1}}}
	for name, tc := range map[string]struct {
		id   string
		s    sandbox.Sandbox
		sig  Signals
		want sandbox.Verdict
	}{
		"watch, exactly":        {"R11", old(5 * time.Minute), Signals{}, sandbox.False},
		"watch, over":           {"R11", old(5*time.Minute + 1), Signals{}, sandbox.True},
		"watch, other state":    {"R11", in(sandbox.StatePaused, hour), Signals{}, sandbox.False},
		"watch, unknown state":  {"R11", in(sandbox.StateUnknown, hour), Signals{}, sandbox.Unknown},
		"watch, no age":         {"R11", sandbox.Sandbox{State: sandbox.StateRunning}, Signals{}, sandbox.Unknown},
		"old, exactly":          {"R27", old(10 * time.Minute), Signals{}, sandbox.False},
		"old, over":             {"R27", old(10*time.Minute + 1), Signals{}, sandbox.True},
		"old, shows life":       {"R27", old(hour), Signals{Logs: quietFor(0)}, sandbox.True},
		"provisioning, exactly": {"R28", in(sandbox.StateProvisioning, 5*time.Minute), Signals{}, sandbox.False},
		"provisioning, over":    {"R28", in(sandbox.StateProvisioning, 5*time.Minute+1), Signals{}, sandbox.True},
		"ending, exactly":       {"S1-52", ending(10 * time.Minute), Signals{}, sandbox.False},
		"ending, over":          {"S1-52", ending(10*time.Minute + 1), Signals{}, sandbox.True},
		"ending, seen now":      {"S1-52", seenEnding(time.Second), Signals{}, sandbox.Unknown},
		"ending, unknown since": {"S1-52", in(sandbox.StateTerminating, hour), Signals{}, sandbox.Unknown},
		"ending, running":       {"S1-52", old(hour), Signals{}, sandbox.False},
		"provisioning, running": {"R28", old(hour), Signals{}, sandbox.False},
		"warned":                {"R13", old(0), Signals{Logs: warned}, sandbox.True},
		"other pattern":         {"R13", old(0), Signals{Logs: other}, sandbox.False},
		"log not read":          {"R13", old(0), Signals{}, sandbox.Unknown},
		"no owner":              {"R29", old(0), Signals{TracksTasks: true}, sandbox.True},
		"a task":                {"R29", with(old(0), func(s *sandbox.Sandbox) { s.TaskID = "t-1" }), Signals{TracksTasks: true}, sandbox.False},
		"an agent":              {"R29", with(old(0), func(s *sandbox.Sandbox) { s.AgentType = "coder" }), Signals{}, sandbox.False},
		"owners not tracked":    {"R29", old(0), Signals{}, sandbox.Unknown},
		"two time limits":       {"R30", old(0), Signals{TimeLimitsHit: new(2)}, sandbox.True},
		"one time limit":        {"R30", old(0), Signals{TimeLimitsHit: new(1)}, sandbox.False},
		"no history":            {"R30", old(0), Signals{}, sandbox.Unknown},
		"silent, exactly":       {"R41", old(hour), Signals{Logs: quietFor(time.Minute)}, sandbox.False},
		"silent, over":          {"R41", old(hour), Signals{Logs: quietFor(time.Minute + 1)}, sandbox.True},
		"silent, not read":      {"R41", old(hour), Signals{}, sandbox.Unknown},
		"silent, ended":         {"R41", in(sandbox.StateFailed, hour), Signals{Logs: quietFor(hour)}, sandbox.False},
		"finished and running":  {"S2-35", old(hour), Signals{Finished: sandbox.True}, sandbox.True},
		"waiting":               {"S2-35", old(hour), Signals{Waits: sandbox.True}, sandbox.True},
		"waits for nothing":     {"S2-35", old(hour), Signals{Waits: sandbox.False}, sandbox.Unknown},
		"not finished":          {"S2-35", old(hour), Signals{Finished: sandbox.False}, sandbox.False},
		"finished, not known":   {"S2-35", old(hour), Signals{}, sandbox.Unknown},
		"finished and ended":    {"S2-35", in(sandbox.StateTerminated, hour), Signals{Finished: sandbox.True}, sandbox.False},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pick(t, Flags(tc.s, tc.sig, DefaultThresholds(), noon()), tc.id)
			assert.Equal(t, tc.want, got.Verdict, got.Say)
			assert.NotEmpty(t, got.Say)
		})
	}
}

func TestFleetFlags(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	counts := func(active, created, destroyed int64) FleetSignals {
		return FleetSignals{Active: n(active), Provisioning: n(0), Terminating: n(0), TotalCreated: n(created), TotalDestroyed: n(destroyed)}
	}
	past := func(minutes ...int64) FleetSignals { // pairs: minutes ago, how many
		var f FleetSignals
		for i := 0; i < len(minutes); i += 2 {
			f.History = append(f.History, ActiveCount{noon().Add(-time.Duration(minutes[i]) * time.Minute), minutes[i+1]})
		}
		return f
	}
	rate := func(timedOut, destroyed int64) FleetSignals {
		return FleetSignals{TimedOut: n(timedOut), TotalDestroyed: n(destroyed)}
	}
	for name, tc := range map[string]struct {
		id   string
		f    FleetSignals
		want sandbox.Verdict
	}{
		"20 active":            {"R4", counts(20, 0, 0), sandbox.False},
		"21 active":            {"R4", counts(21, 0, 0), sandbox.True},
		"active unknown":       {"R4", FleetSignals{}, sandbox.Unknown},
		"sustained":            {"R10", past(5, 21, 3, 30, 0, 25), sandbox.True},
		"sustained, unordered": {"R10", past(0, 21, 5, 21), sandbox.True},
		"high before that":     {"R10", past(60, 21, 30, 3, 5, 21, 0, 21), sandbox.True},
		"not that long":        {"R10", past(4, 21, 0, 21), sandbox.Unknown},
		"dipped":               {"R10", past(9, 21, 4, 20, 0, 21), sandbox.False},
		"now fine":             {"R10", past(9, 21, 0, 20), sandbox.False},
		"one sample":           {"R10", past(9, 21), sandbox.Unknown},
		"no samples":           {"R10", FleetSignals{}, sandbox.Unknown},
		"from the future":      {"R10", past(-5, 21, -9, 21), sandbox.Unknown},
		"exactly 5 percent":    {"R12", rate(5, 100), sandbox.False},
		"over 5 percent":       {"R12", rate(6, 100), sandbox.True},
		"nothing ended":        {"R12", rate(0, 0), sandbox.Unknown},
		"more than all":        {"R12", rate(3, 2), sandbox.Unknown},
		"rate unknown":         {"R12", FleetSignals{TotalDestroyed: n(3)}, sandbox.Unknown},
		"of tasks, over":       {"R12", FleetSignals{Attempts: n(20), AttemptsTimedOut: n(2)}, sandbox.True},
		"of tasks, 5 percent":  {"R12", FleetSignals{Attempts: n(20), AttemptsTimedOut: n(1)}, sandbox.False},
		"of too few tasks":     {"R12", FleetSignals{Attempts: n(19), AttemptsTimedOut: n(19)}, sandbox.Unknown},
		"counters go first":    {"R12", FleetSignals{TimedOut: n(0), TotalDestroyed: n(9), Attempts: n(20), AttemptsTimedOut: n(20)}, sandbox.False},
		"cleanup fails":        {"R14", FleetSignals{CleanupFailures: n(1)}, sandbox.True},
		"cleanup works":        {"R14", FleetSignals{CleanupFailures: n(0)}, sandbox.False},
		"cleanup unknown":      {"R14", FleetSignals{}, sandbox.Unknown},
		"the runbook's sample": {"R18", counts(3, 150, 147), sandbox.False},
		"one is missing":       {"R18", counts(2, 150, 147), sandbox.True},
		"one too many":         {"R18", counts(4, 150, 147), sandbox.True},
		"at the limit":         {"R111", FleetSignals{Active: n(10), MaxSandboxes: n(10)}, sandbox.False},
		"over the limit":       {"R111", FleetSignals{Active: n(11), MaxSandboxes: n(10)}, sandbox.True},
		"no limit":             {"R111", FleetSignals{Active: n(11)}, sandbox.Unknown},
		"totals unknown":       {"R18", FleetSignals{Active: n(3), Provisioning: n(0), Terminating: n(0)}, sandbox.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pick(t, FleetFlags(tc.f, DefaultThresholds(), noon()), tc.id)
			assert.Equal(t, tc.want, got.Verdict, got.Say)
			if tc.want == sandbox.True {
				assert.NotEmpty(t, got.Evidence)
			}
		})
	}
}

func TestTimeoutRateHasThreeGrades(t *testing.T) {
	t.Parallel()
	for timedOut, want := range map[int64]string{19: "1.9% healthy", 20: "2% degraded", 50: "5% degraded", 51: "5.1% alert"} {
		f := FleetSignals{TimedOut: &timedOut, TotalDestroyed: new(int64(1000))}
		got := pick(t, FleetFlags(f, DefaultThresholds(), noon()), "R12")
		require.Len(t, got.Evidence, 1)
		assert.Equal(t, want, got.Evidence[0].Value)
	}
}

func TestFiguresAreWrittenInOneWay(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 1: "1", 99.999: "100", 0.125: "0.13", -1.5: "-1.5", 1e15: "1000000000000000"} {
		assert.Equal(t, want, formatDecimal(v))
	}
	assert.Equal(t, "600ms", sandbox.FormatElapsed(600*time.Millisecond))
	assert.Equal(t, "10m", sandbox.FormatElapsed(10*time.Minute))
}

// TestFlagsThatAreProblems: severity decides, but for age and silence, which the verdict weighs.
func TestFlagsThatAreProblems(t *testing.T) {
	t.Parallel()
	var weighed []string
	all := append(Flags(sandbox.Sandbox{State: sandbox.StateRunning}, Signals{}, DefaultThresholds(), noon()), FleetFlags(FleetSignals{}, DefaultThresholds(), noon())...)
	for _, f := range all {
		for _, v := range []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown} {
			f.Verdict = v
			assert.Equal(t, v == sandbox.True && f.Severity != Info && !f.Weighed, f.IsProblem(), "%s %s", f.ID, v)
		}
		if f.Weighed && f.Severity != Info {
			weighed = append(weighed, f.ID)
		}
	}
	assert.Equal(t, []string{"R27", "R28", "R41"}, weighed, "the help of diagnose names them")
}

// TestAnOwnerWithoutATask: sbx itself, or a person, has made it.
func TestAnOwnerWithoutATask(t *testing.T) {
	t.Parallel()
	for owner, want := range map[string]bool{"": true, "sbx": false, "alice": false} {
		s := with(old(0), func(s *sandbox.Sandbox) { s.Owner = owner })
		v := Judge(s, Signals{Looked: true, TracksTasks: true}, DefaultThresholds(), noon())
		said := slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.ID == noOwner })
		assert.Equal(t, want, said, "owner %q", owner)
	}
}
