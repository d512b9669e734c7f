package commands

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/sandbox"
	"sbx/internal/task"
)

// failedTask is one whose only attempt ran out of memory.
func failedTask(id string, at time.Time) task.Task {
	code := 137
	t := task.New(id, "", task.Spec{Provider: "local", Command: []string{"leak"}, Attempts: 3}, task.Owner{Host: "cron-1", PID: 1, Who: "test"}, at)
	t.State, t.EndedAt, t.VerifiedAt = task.Failed, at.Add(time.Minute), at.Add(time.Minute)
	t.Attempts = []task.Attempt{{
		N: 1, Provider: "local", Sandbox: "aaaa1111", IntentAt: at, StartedAt: at, EndedAt: at.Add(36 * time.Second), GoneAt: at.Add(37 * time.Second),
		Exit: &task.Exit{Code: &code, Raw: "signal: 9", Signal: "SIGKILL", Class: sandbox.ClassOOM, Cause: sandbox.CauseOOM, Confidence: sandbox.Certain},
	}}
	return t
}

func keepTasks(t *testing.T, b *bench, tasks ...task.Task) {
	t.Helper()
	for _, one := range tasks {
		_, _, err := task.Ledger{Store: b.kept(atNoon)}.Add(t.Context(), one)
		require.NoError(t, err)
	}
}

func reported(t *testing.T, r result, id string) map[string]any {
	t.Helper()
	for _, item := range r.list(t, "items") {
		if item["id"] == id {
			return item
		}
	}
	require.Fail(t, "no item "+id, r.stdout)
	return nil
}

func TestReportMeasuresWhatIsInTheStore(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	stop := failedTask("t-stopped00001", noon.Add(-time.Hour))
	stop.State, stop.StopAt, stop.StopBy = task.Stopped, stop.Attempts[0].EndedAt, "ann"
	stop.Attempts[0].GoneAt = stop.StopAt.Add(7 * time.Second)
	keepTasks(t, b, failedTask("t-leak00000001", noon.Add(-2*time.Hour)), stop)
	r := b.run(t, "report -o json")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Equal(t, map[string]any{
		"id": "stop_time_p99", "requirement": "S1-26", "group": "stop and cancellation", "title": "stop to verified end (p99)", "value": 7.0, "unit": "seconds",
		"target": "< 5", "verdict": "false", "samples": 1.0, "why": "one that continues counts with its time so far",
	}, reported(t, r, "stop_time_p99"))
	assert.Equal(t, []any{0.0, "unknown", nil}, []any{reported(t, r, "completed_without_sigkill")["value"], reported(t, r, "completed_without_sigkill")["verdict"], reported(t, r, "completed_without_sigkill")["target"]})
	assert.Equal(t, []any{nil, "unknown", 0.0}, []any{reported(t, r, "expired_recreated")["value"], reported(t, r, "expired_recreated")["verdict"], reported(t, r, "expired_recreated")["samples"]})
	assert.Equal(t, "true", reported(t, r, "ends_verified")["verdict"])
	assert.InDelta(t, 2, r.object(t)["tasks"], 0)
	assert.Equal(t, []map[string]any{{"class": "oom", "cause": "oom", "attempts": 1.0, "latest": "t-leak00000001"}}, r.list(t, "causes"))
	assert.Equal(t, []map[string]any{{"task": "t-leak00000001", "why": "failed (oom)"}}, r.list(t, "look_at"))
}

func TestReportSince(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	keepTasks(t, b, failedTask("t-leak00000001", noon.Add(-30*time.Hour)), failedTask("t-leak00000002", noon.Add(-time.Hour)))
	assert.InDelta(t, 1, b.run(t, "report --since 24h -o json").object(t)["tasks"], 0)
	assert.InDelta(t, 2, b.run(t, "report --since 7d -o json").object(t)["tasks"], 0)
	assert.Equal(t, 2, b.run(t, "report --since soon").code)
}

func TestReportPage(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	b.tty, b.width = true, 80
	keepTasks(t, b, failedTask("t-leak00000001", noon.Add(-2*time.Hour)))
	r := b.run(t, "report")
	for line := range strings.Lines(r.stdout) {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 80, line)
	}
	golden(t, "report", r.stdout)
}
