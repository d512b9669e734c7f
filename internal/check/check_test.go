package check_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/check"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// flag is the answer to one question about a provider.
func flag(t *testing.T, f triage.FleetSignals, id string) triage.Flag {
	t.Helper()
	for _, one := range check.Flags(&check.Subject{Figures: f, Limits: triage.DefaultThresholds()}, noon) {
		if one.ID == id {
			return one
		}
	}
	t.Fatalf("no flag %s", id)
	return triage.Flag{}
}

func TestEveryRowIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range check.Alerts() {
		assert.False(t, seen[r.ID], r.ID)
		seen[r.ID] = true
		for _, text := range []string{r.ID, string(r.Severity), string(r.Level), r.Title, r.Next} {
			assert.NotEmpty(t, text, r.ID)
		}
	}
	unknown := &check.Subject{Limits: triage.DefaultThresholds()}
	for _, c := range append(check.Alerts(), check.Targets()...) {
		assert.Equal(t, sandbox.Unknown, c.Judge(unknown), c.ID)
		assert.Positive(t, c.Limit(unknown)+1, c.ID)
		assert.NotEmpty(t, c.Title, c.ID)
	}
	for _, f := range check.Flags(unknown, noon) {
		assert.Equal(t, sandbox.Unknown, f.Verdict, f.ID)
		assert.NotEmpty(t, f.Say, f.ID)
	}
}

func TestFleetFlags(t *testing.T) {
	t.Parallel()
	n := func(v int64) *int64 { return &v }
	counts := func(active, created, destroyed int64) triage.FleetSignals {
		return triage.FleetSignals{Active: n(active), Provisioning: n(0), Terminating: n(0), TotalCreated: n(created), TotalDestroyed: n(destroyed)}
	}
	past := func(minutes ...int64) triage.FleetSignals { // pairs: minutes ago, how many
		var f triage.FleetSignals
		for i := 0; i < len(minutes); i += 2 {
			f.History = append(f.History, triage.ActiveCount{At: noon.Add(-time.Duration(minutes[i]) * time.Minute), Active: minutes[i+1]})
		}
		return f
	}
	rate := func(timedOut, destroyed int64) triage.FleetSignals {
		return triage.FleetSignals{TimedOut: n(timedOut), TotalDestroyed: n(destroyed)}
	}
	for name, tc := range map[string]struct {
		id   string
		f    triage.FleetSignals
		want sandbox.Verdict
	}{
		"20 active":            {"too_many_active", counts(20, 0, 0), sandbox.False},
		"21 active":            {"too_many_active", counts(21, 0, 0), sandbox.True},
		"active unknown":       {"too_many_active", triage.FleetSignals{}, sandbox.Unknown},
		"sustained":            {"too_many_active_sustained", past(5, 21, 3, 30, 0, 25), sandbox.True},
		"sustained, unordered": {"too_many_active_sustained", past(0, 21, 5, 21), sandbox.True},
		"high before that":     {"too_many_active_sustained", past(60, 21, 30, 3, 5, 21, 0, 21), sandbox.True},
		"not that long":        {"too_many_active_sustained", past(4, 21, 0, 21), sandbox.Unknown},
		"dipped":               {"too_many_active_sustained", past(9, 21, 4, 20, 0, 21), sandbox.False},
		"now fine":             {"too_many_active_sustained", past(9, 21, 0, 20), sandbox.False},
		"one sample":           {"too_many_active_sustained", past(9, 21), sandbox.Unknown},
		"no samples":           {"too_many_active_sustained", triage.FleetSignals{}, sandbox.Unknown},
		"from the future":      {"too_many_active_sustained", past(-5, 21, -9, 21), sandbox.Unknown},
		"without times":        {"too_many_active_sustained", triage.FleetSignals{History: []triage.ActiveCount{{Active: 99}, {Active: 99}}}, sandbox.Unknown},
		"exactly 5 percent":    {"sandbox_timeout_high", rate(5, 100), sandbox.False},
		"over 5 percent":       {"sandbox_timeout_high", rate(6, 100), sandbox.True},
		"nothing ended":        {"sandbox_timeout_high", rate(0, 0), sandbox.Unknown},
		"more than all":        {"sandbox_timeout_high", rate(3, 2), sandbox.Unknown},
		"rate unknown":         {"sandbox_timeout_high", triage.FleetSignals{TotalDestroyed: n(3)}, sandbox.Unknown},
		"of tasks, over":       {"sandbox_timeout_high", triage.FleetSignals{Attempts: n(20), AttemptsTimedOut: n(2)}, sandbox.True},
		"of tasks, 5 percent":  {"sandbox_timeout_high", triage.FleetSignals{Attempts: n(20), AttemptsTimedOut: n(1)}, sandbox.False},
		"of too few tasks":     {"sandbox_timeout_high", triage.FleetSignals{Attempts: n(19), AttemptsTimedOut: n(19)}, sandbox.Unknown},
		"counters go first":    {"sandbox_timeout_high", triage.FleetSignals{TimedOut: n(0), TotalDestroyed: n(9), Attempts: n(20), AttemptsTimedOut: n(20)}, sandbox.False},
		"cleanup fails":        {"cleanup_fails", triage.FleetSignals{CleanupFailures: n(1)}, sandbox.True},
		"cleanup works":        {"cleanup_fails", triage.FleetSignals{CleanupFailures: n(0)}, sandbox.False},
		"cleanup unknown":      {"cleanup_fails", triage.FleetSignals{}, sandbox.Unknown},
		"the runbook's sample": {"counts_differ", counts(3, 150, 147), sandbox.False},
		"one is missing":       {"counts_differ", counts(2, 150, 147), sandbox.True},
		"one too many":         {"counts_differ", counts(4, 150, 147), sandbox.True},
		"at the limit":         {"max_sandboxes_over", triage.FleetSignals{Active: n(10), MaxSandboxes: n(10)}, sandbox.False},
		"over the limit":       {"max_sandboxes_over", triage.FleetSignals{Active: n(11), MaxSandboxes: n(10)}, sandbox.True},
		"no limit":             {"max_sandboxes_over", triage.FleetSignals{Active: n(11)}, sandbox.Unknown},
		"totals unknown":       {"counts_differ", triage.FleetSignals{Active: n(3), Provisioning: n(0), Terminating: n(0)}, sandbox.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := flag(t, tc.f, tc.id)
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
		f := triage.FleetSignals{TimedOut: &timedOut, TotalDestroyed: new(int64(1000))}
		got := flag(t, f, "sandbox_timeout_high")
		require.Len(t, got.Evidence, 1)
		assert.Equal(t, want, got.Evidence[0].Value)
	}
}
