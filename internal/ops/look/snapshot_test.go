package look_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/fault"
	"sbx/internal/ops"
	"sbx/internal/ops/end"
	"sbx/internal/ops/look"
	"sbx/internal/providers"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/snapshot"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

// recordedLook diagnoses, and reads the snapshot as a file would give it back.
func recordedLook(t *testing.T, env *ops.Env, watch ops.Observer) (*look.DiagnoseResult, *snapshot.Snapshot) {
	t.Helper()
	result, err := look.Diagnose(t.Context(), env, look.DiagnoseRequest{Record: true}, watch)
	require.NoError(t, err)
	made, err := result.Snapshot()
	require.NoError(t, err)
	text, err := snapshot.Encode(made)
	require.NoError(t, err)
	read, err := snapshot.Decode(text)
	require.NoError(t, err, "%s", text)
	return result, read
}

func silentBox(id string) fake.Seed {
	seed := opstest.Seeds(id)[0]
	seed.Logs = []sandbox.LogLine{{At: seed.Sandbox.CreatedAt, Stream: "stdout", Text: "agent started, password hunter2"}}
	seed.Sandbox.LastActivityAt = seed.Sandbox.CreatedAt
	seed.Usage = func(now time.Time) sandbox.Usage {
		return sandbox.Usage{At: now, CPUSeconds: new(1.0), MemoryBytes: new(int64(9 << 20)), Operations: new(int64(3)), Source: "cgroup2"}
	}
	return seed
}

func startingBox(id string) fake.Seed {
	seed := opstest.Seeds(id)[0]
	seed.Sandbox.State = sandbox.StateProvisioning
	return seed
}

func failedBox(id string) fake.Seed {
	seed := opstest.Seeds(id)[0]
	seed.Sandbox.State, seed.Sandbox.EndedAt = sandbox.StateFailed, time.Now().Add(-time.Minute)
	seed.Sandbox.Exit = &sandbox.Exit{Code: new(137), Raw: "137", Signal: "SIGKILL", Class: sandbox.ClassTimeout, Cause: sandbox.CauseTimeout, Confidence: sandbox.Certain}
	return seed
}

// workingLeak writes output, and its memory is full in a minute.
func workingLeak(id string) fake.Seed {
	seed := opstest.Seeds(id)[0]
	seed.Sandbox.LastActivityAt = time.Now()
	var n atomic.Int64
	seed.Usage = func(now time.Time) sandbox.Usage {
		i := n.Add(1)
		return sandbox.Usage{
			At: now.Add(time.Duration(i-20) * 3 * time.Second), CPUSeconds: new(float64(i)), MemoryBytes: new((200 + 30*i) * sandbox.MiB), MemoryLimitBytes: new(int64(512 * sandbox.MiB)), Source: "cgroup2",
		}
	}
	return seed
}

// snapshotFleets are fleets in which each source of a diagnosis matters once.
func snapshotFleets() map[string]func() []*fake.Provider {
	with := func(name string, breaks []fake.Fault, boxes ...fake.Seed) func() []*fake.Provider {
		return func() []*fake.Provider {
			p := fake.New(fake.Options{Name: name, Quotas: []providers.Quota{{Name: "sandboxes", Used: new(9.0), Limit: new(10.0)}}})
			p.Add(boxes...)
			for _, b := range breaks {
				p.Break(b)
			}
			return []*fake.Provider{p}
		}
	}
	away := func(op fake.Op) []fake.Fault {
		return []fake.Fault{{Op: op, Err: fault.New(fault.KindUnavailable, "503")}}
	}
	young := opstest.Seeds("young001")[0]
	young.Sandbox.CreatedAt, young.Sandbox.StartedAt = time.Now(), time.Now()
	held := silentBox("held0001")
	held.Sandbox.Labels = map[string]string{sandbox.LabelKeep: "true"}
	return map[string]func() []*fake.Provider{
		"nothing":             with("prod", nil),
		"all kinds":           with("prod", nil, looping("loop0001"), silentBox("silent01"), startingBox("start001"), failedBox("fail0001"), young, held, opstest.Seeds("plain001")[0]),
		"at work":             with("prod", nil, workingLeak("leak0001"), young),
		"no list":             with("prod", away(fake.OpList), silentBox("silent01")),
		"no stats":            with("prod", away(fake.OpStats), silentBox("silent01")),
		"no usage":            with("prod", away(fake.OpUsage), silentBox("silent01"), looping("loop0001")),
		"no logs":             with("prod", away(fake.OpLogs), silentBox("silent01"), looping("loop0001")),
		"no activity":         with("prod", away(fake.OpActivity), silentBox("silent01"), looping("loop0001")),
		"no processes":        with("prod", away(fake.OpProcesses), silentBox("silent01")),
		"no quota":            with("prod", away(fake.OpQuota), startingBox("start001")),
		"all in provisioning": with("prod", nil, startingBox("start001"), startingBox("start002")),
		"two providers": func() []*fake.Provider {
			return append(with("prod", nil, looping("loop0001"))(), with("dark", away(fake.OpList), silentBox("silent01"))()...)
		},
	}
}

// TestReplayConcludesWhatTheDiagnosisDid: from the file alone, with the same settings, in every kind of
// fleet; and the plan is that of a cleanup of the same fleet.
func TestReplayConcludesWhatTheDiagnosisDid(t *testing.T) {
	t.Parallel()
	for name, fakes := range snapshotFleets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := opstest.NewSite(t, opstest.OneProfile, fakes()...)
			watch := &opstest.Recorder{}
			env := site.Env(t)
			result, read := recordedLook(t, env, watch)
			replayed := look.Replay(t.Context(), env, read)
			assert.Empty(t, changesOf(snapshot.CompareConclusions(read.Concluded, replayed.Concluded)))
			assert.Equal(t, read.Settings, replayed.Settings)
			assert.Equal(t, string(result.Verdict()), string(replayed.Concluded.Verdict))
			assert.Equal(t, result.Listed, read.Concluded.Listed)

			planned, err := end.PlanCleanup(t.Context(), env, end.CleanupRequest{Rule: cleanup.Rule{Selector: selector.Selector{Stuck: true}}}, watch)
			require.NoError(t, err)
			plan := []string{}
			for _, j := range planned.Survey.Selected {
				plan = append(plan, j.Sandbox.Ref().String())
			}
			slices.Sort(plan)
			assert.Equal(t, plan, read.Concluded.Plan)
		})
	}
}

func changesOf(changes []snapshot.Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.String())
	}
	return all
}

// TestReplayFindsWhatTheFleetHas: the fleets above are not all alike.
func TestReplayFindsWhatTheFleetHas(t *testing.T) {
	t.Parallel()
	site := opstest.NewSite(t, opstest.OneProfile, snapshotFleets()["all kinds"]()...)
	watch := &opstest.Recorder{}
	_, read := recordedLook(t, site.Env(t), watch)
	c := read.Concluded
	assert.Equal(t, "false", string(c.Verdict))
	assert.Equal(t, 7, c.Listed)
	causes := map[string]string{}
	for _, m := range c.Stuck {
		causes[m.Ref] = string(m.Cause)
	}
	assert.Equal(t, map[string]string{"prod/loop0001": "busy_loop", "prod/silent01": "silent", "prod/held0001": "silent", "prod/start001": "provisioning"}, causes)
	assert.NotContains(t, c.Plan, "prod/held0001", "it is protected")
	assert.Contains(t, c.Alerts, snapshot.Alert{Rule: "sandbox_stuck", Provider: "prod", Verdict: sandbox.True})
	assert.Contains(t, c.Alerts, snapshot.Alert{Rule: "state_corruption", Provider: "prod", Verdict: sandbox.Unknown}, "no record was compared")
	assert.NotContains(t, c.Alerts, snapshot.Alert{Rule: "active_escalated", Provider: "prod", Verdict: sandbox.False})
}

// TestReplaySuspectsWhatWorksAndLeaks: what is read of a sandbox at work is part of the look.
func TestReplaySuspectsWhatWorksAndLeaks(t *testing.T) {
	t.Parallel()
	site := opstest.NewSite(t, opstest.OneProfile, snapshotFleets()["at work"]()...)
	watch := &opstest.Recorder{}
	env := site.Env(t)
	_, read := recordedLook(t, env, watch)
	assert.Equal(t, []snapshot.Marked{{Ref: "prod/leak0001", Cause: sandbox.CauseLeak}}, read.Concluded.Suspected)
	assert.Equal(t, read.Concluded.Suspected, look.Replay(t.Context(), env, read).Concluded.Suspected)
}

// TestReplayByOtherThresholds names what would be different, and why.
func TestReplayByOtherThresholds(t *testing.T) {
	t.Parallel()
	watch := &opstest.Recorder{}
	site := opstest.NewSite(t, opstest.OneProfile, snapshotFleets()["all kinds"]()...)
	_, read := recordedLook(t, site.Env(t), watch)
	for config, want := range map[string][]string{
		"thresholds: {stuck_age: 2h}\n": {
			"stuck 4 -> 1: no longer prod/held0001, prod/loop0001, prod/silent01", "plan 3 -> 1: no longer prod/loop0001, prod/silent01", "cause busy loop no longer likely", "thresholds.stuck_age 10m -> 2h (prod)",
		},
		"thresholds: {provisioning_age: 3h}\n":        {"stuck 4 -> 3: no longer prod/start001", "cause not started no longer likely"},
		"thresholds: {active: 4, active_normal: 4}\n": {"flag R4 holds now", "alert sandbox_leak_detected at prod holds now", "thresholds.active 20 -> 4 (prod)"},
		"thresholds: {quota_near: 95%}\n":             {"alert quota_near at prod no longer holds", "check R129 false -> true", "thresholds.quota_near 80% -> 95% (prod)"},
		"":                                            nil,
	} {
		other := opstest.NewSite(t, opstest.OneProfile+config)
		replayed := look.Replay(t.Context(), other.Env(t), read)
		got := changesOf(append(snapshot.CompareConclusions(read.Concluded, replayed.Concluded), snapshot.CompareSettings(read.Settings, replayed.Settings)...))
		if len(want) == 0 {
			assert.Empty(t, got)
			continue
		}
		assert.Subset(t, got, want, config)
	}
}

// TestASnapshotHasNoSecrets: neither labels nor a line of a log are in it, and names are redacted.
func TestASnapshotHasNoSecrets(t *testing.T) {
	t.Parallel()
	box := silentBox("silent01")
	box.Sandbox.Name, box.Sandbox.Labels, box.Sandbox.Command = "box of hunter2", map[string]string{"note": "hunter2"}, []string{"run", "hunter2"}
	p := fake.New(fake.Options{Name: "prod"})
	p.Add(box)
	p.Break(fake.Fault{Op: fake.OpStats, Err: fault.New(fault.KindUnavailable, "hunter2 was refused")})
	site := opstest.NewSite(t, opstest.OneProfile, p)
	watch := &redacting{}
	result, err := look.Diagnose(t.Context(), site.Env(t), look.DiagnoseRequest{Record: true}, watch)
	require.NoError(t, err)
	made, err := result.Snapshot()
	require.NoError(t, err)
	text, err := snapshot.Encode(made)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter2")
	assert.Contains(t, string(text), "box of ***")
}

// redacting is an observer that knows a secret.
type redacting struct{ opstest.Recorder }

func (*redacting) Redact(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }
