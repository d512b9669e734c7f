package triage

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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
		"watch, exactly":        {"running_long", old(5 * time.Minute), Signals{}, sandbox.False},
		"watch, over":           {"running_long", old(5*time.Minute + 1), Signals{}, sandbox.True},
		"watch, other state":    {"running_long", in(sandbox.StatePaused, hour), Signals{}, sandbox.False},
		"watch, unknown state":  {"running_long", in(sandbox.StateUnknown, hour), Signals{}, sandbox.Unknown},
		"watch, no age":         {"running_long", sandbox.Sandbox{State: sandbox.StateRunning}, Signals{}, sandbox.Unknown},
		"old, exactly":          {"over_age", old(10 * time.Minute), Signals{}, sandbox.False},
		"old, over":             {"over_age", old(10*time.Minute + 1), Signals{}, sandbox.True},
		"old, shows life":       {"over_age", old(hour), Signals{Logs: quietFor(0)}, sandbox.True},
		"provisioning, exactly": {"provisioning_long", in(sandbox.StateProvisioning, 5*time.Minute), Signals{}, sandbox.False},
		"provisioning, over":    {"provisioning_long", in(sandbox.StateProvisioning, 5*time.Minute+1), Signals{}, sandbox.True},
		"ending, exactly":       {"ending_long", ending(10 * time.Minute), Signals{}, sandbox.False},
		"ending, over":          {"ending_long", ending(10*time.Minute + 1), Signals{}, sandbox.True},
		"ending, seen now":      {"ending_long", seenEnding(time.Second), Signals{}, sandbox.Unknown},
		"ending, unknown since": {"ending_long", in(sandbox.StateTerminating, hour), Signals{}, sandbox.Unknown},
		"ending, running":       {"ending_long", old(hour), Signals{}, sandbox.False},
		"provisioning, running": {"provisioning_long", old(hour), Signals{}, sandbox.False},
		"warned":                {"resource_warnings", old(0), Signals{Logs: warned}, sandbox.True},
		"other pattern":         {"resource_warnings", old(0), Signals{Logs: other}, sandbox.False},
		"log not read":          {"resource_warnings", old(0), Signals{}, sandbox.Unknown},
		"no owner":              {"no_task", old(0), Signals{TracksTasks: true}, sandbox.True},
		"a task":                {"no_task", with(old(0), func(s *sandbox.Sandbox) { s.TaskID = "t-1" }), Signals{TracksTasks: true}, sandbox.False},
		"an agent":              {"no_task", with(old(0), func(s *sandbox.Sandbox) { s.AgentType = "coder" }), Signals{}, sandbox.False},
		"owners not tracked":    {"no_task", old(0), Signals{}, sandbox.Unknown},
		"two time limits":       {"repeated_timeouts", old(0), Signals{TimeLimitsHit: new(2)}, sandbox.True},
		"one time limit":        {"repeated_timeouts", old(0), Signals{TimeLimitsHit: new(1)}, sandbox.False},
		"no history":            {"repeated_timeouts", old(0), Signals{}, sandbox.Unknown},
		"silent, exactly":       {"silent", old(hour), Signals{Logs: quietFor(time.Minute)}, sandbox.False},
		"silent, over":          {"silent", old(hour), Signals{Logs: quietFor(time.Minute + 1)}, sandbox.True},
		"silent, not read":      {"silent", old(hour), Signals{}, sandbox.Unknown},
		"silent, ended":         {"silent", in(sandbox.StateFailed, hour), Signals{Logs: quietFor(hour)}, sandbox.False},
		"finished and running":  {"task_done", old(hour), Signals{Finished: sandbox.True}, sandbox.True},
		"waiting":               {"task_done", old(hour), Signals{Waits: sandbox.True}, sandbox.True},
		"waits for nothing":     {"task_done", old(hour), Signals{Waits: sandbox.False}, sandbox.Unknown},
		"not finished":          {"task_done", old(hour), Signals{Finished: sandbox.False}, sandbox.False},
		"finished, not known":   {"task_done", old(hour), Signals{}, sandbox.Unknown},
		"finished and ended":    {"task_done", in(sandbox.StateTerminated, hour), Signals{Finished: sandbox.True}, sandbox.False},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := pick(t, Flags(tc.s, tc.sig, DefaultThresholds(), noon()), tc.id)
			assert.Equal(t, tc.want, got.Verdict, got.Say)
			assert.NotEmpty(t, got.Say)
		})
	}
}

func TestFiguresAreWrittenInOneWay(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 1: "1", 99.999: "100", 0.125: "0.13", -1.5: "-1.5", 1e15: "1000000000000000"} {
		assert.Equal(t, want, FormatDecimal(v))
	}
	assert.Equal(t, "600ms", sandbox.FormatElapsed(600*time.Millisecond))
	assert.Equal(t, "10m", sandbox.FormatElapsed(10*time.Minute))
}

// TestFlagsThatAreProblems: severity decides, but for age and silence, which the verdict weighs.
func TestFlagsThatAreProblems(t *testing.T) {
	t.Parallel()
	var weighed []string
	for _, f := range Flags(sandbox.Sandbox{State: sandbox.StateRunning}, Signals{}, DefaultThresholds(), noon()) {
		for _, v := range []sandbox.Verdict{sandbox.True, sandbox.False, sandbox.Unknown} {
			f.Verdict = v
			assert.Equal(t, v == sandbox.True && f.Severity != Info && !f.Weighed, f.IsProblem(), "%s %s", f.ID, v)
		}
		if f.Weighed && f.Severity != Info {
			weighed = append(weighed, f.ID)
		}
	}
	assert.Equal(t, []string{"over_age", "provisioning_long", "silent"}, weighed, "the help of diagnose names them")
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
