package commands

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cron"
	"sbx/internal/journal"
	"sbx/internal/providers"
	"sbx/internal/runs"
	"sbx/internal/testkit/bubble"
	"sbx/internal/testkit/fake"
)

// staged is a fleet of one provider whose figures stand beside their limits.
type staged struct {
	active, timedOut int         // of 100 that have ended
	quota            float64     // of 100
	cleaned          []stagedRun // of the layer stuck, newest first
	undecided        bool        // nobody has configured whose they are

	stood      time.Duration // for how long as many have been active in every stored sample
	thresholds string        // of the configuration
}

type stagedRun struct {
	ago     time.Duration
	failed  bool
	unowned int
}

// TestOneFleetHasOneVerdict: every surface that judges a figure says the same of it, on both sides
// of its limit. A surface that compares by itself fails here.
func TestOneFleetHasOneVerdict(t *testing.T) {
	t.Parallel()
	good := []stagedRun{{ago: time.Minute}}
	for name, tc := range map[string]struct {
		fleet                                    staged
		over, timeouts, degraded, quota, cleanup string // what is asked: see verdicts
	}{
		"at every limit":            {staged{active: 20, timedOut: 5, quota: 79, cleaned: good}, "false", "false", "true", "false", "true"},
		"over every limit":          {staged{active: 21, timedOut: 6, quota: 80, cleaned: []stagedRun{{ago: 11 * time.Minute}}}, "true", "true", "true", "true", "false"},
		"over a default for 2 days": {staged{active: 236, timedOut: 1, quota: 10, cleaned: good, stood: 48 * time.Hour}, "false", "false", "false", "false", "true"},
		"for less than a day":       {staged{active: 236, timedOut: 1, quota: 10, cleaned: good, stood: 23 * time.Hour}, "true", "false", "false", "false", "true"},
		"over what is configured":   {staged{active: 236, timedOut: 1, quota: 10, cleaned: good, stood: 48 * time.Hour, thresholds: "thresholds: {active: 20}\n"}, "true", "false", "false", "false", "true"},
		"healthy":                   {staged{active: 1, timedOut: 1, quota: 10, cleaned: good}, "false", "false", "false", "false", "true"},
		"degraded":                  {staged{active: 1, timedOut: 2, quota: 10, cleaned: good}, "false", "false", "true", "false", "true"},
		"no cleanup":                {staged{active: 1, timedOut: 1, quota: 10, cleaned: nil}, "false", "false", "false", "false", "unknown"},
		"cleanup in time":           {staged{active: 1, timedOut: 1, quota: 10, cleaned: []stagedRun{{ago: 10 * time.Minute}}}, "false", "false", "false", "false", "true"},
		"cleanup fails":             {staged{active: 1, timedOut: 1, quota: 10, cleaned: []stagedRun{{ago: time.Minute, failed: true}}}, "false", "false", "false", "false", "false"},
		"it failed once":            {staged{active: 1, timedOut: 1, quota: 10, cleaned: []stagedRun{{ago: time.Minute, failed: true}, {ago: 6 * time.Minute}}}, "false", "false", "false", "false", "true"},
		"cleanup is too old":        {staged{active: 1, timedOut: 1, quota: 10, cleaned: []stagedRun{{ago: 25 * time.Hour}}}, "false", "false", "false", "false", "false"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			got := tc.fleet.verdicts(t)
			for question, want := range map[string]string{"over": tc.over, "timeouts": tc.timeouts, "degraded": tc.degraded, "quota": tc.quota, "cleanup": tc.cleanup} {
				require.NotEmpty(t, got[question])
				for surface, verdict := range got[question] {
					assert.Equal(t, want, verdict, "%s by %s", question, surface)
				}
			}
		})
	}
}

// TestAnOwnerIsMissing: cleanup that leaves only what nobody owns runs, and is not in order.
func TestAnOwnerIsMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := staged{active: 1, timedOut: 1, quota: 10, cleaned: []stagedRun{{ago: time.Minute, unowned: 3}}, undecided: true}.verdicts(t)["cleanup"]
		assert.Equal(t, "true", got["diagnose cleanup_overdue"], "it runs")
		delete(got, "diagnose cleanup_overdue")
		for surface, verdict := range got {
			assert.Equal(t, "false", verdict, surface)
		}
	})
}

// verdicts asks every surface: "over" more are active than may be, "timeouts" the rate is an alert,
// "degraded" it is not healthy, "quota" one is nearly used up, "cleanup" it runs.
func (s staged) verdicts(t *testing.T) map[string]map[string]string {
	t.Helper()
	b := s.bench(t)
	run := func(line string) result { return b.run(t, line+" --provider prod") }
	got := map[string]map[string]string{}
	note := func(question, surface string, verdict any) {
		if got[question] == nil {
			got[question] = map[string]string{}
		}
		got[question][surface] = fmt.Sprint(verdict)
	}

	stats := run("stats -o json").list(t, "items")[0]
	b.tty, b.width = true, 200
	page := run("stats").stdout
	b.tty = false
	diagnosis := run("diagnose -o json").item(t)
	for surface, flags := range map[string]any{"stats": stats["flags"], "diagnose": diagnosis["flags"]} {
		note("over", surface+" R4", fieldOf(t, flags, "id", "too_many_active", "verdict") == "true" && fieldOf(t, flags, "id", "too_many_active", "severity") != "info")
		note("timeouts", surface+" R12", fieldOf(t, flags, "id", "sandbox_timeout_high", "verdict"))
	}
	note("over", "stats page", strings.Contains(page, " of 20 ALERT"))
	note("timeouts", "stats page", strings.Contains(page, "% of 5% ALERT"))
	note("degraded", "stats page", strings.Contains(page, "% of 5% ALERT") || strings.Contains(page, "degraded"))
	note("cleanup", "diagnose cleanup_overdue", negated(fieldOf(t, diagnosis["flags"], "id", "cleanup_overdue", "verdict")))

	verify := run("verify -o json").item(t)
	alerts := fmt.Sprint(verify["alerts"])
	note("over", "alert", strings.Contains(alerts, "sandbox_leak_detected"))
	if s.active > 50 {
		note("over", "escalation", strings.Contains(alerts, "active_escalated"))
		note("over", "verify active_normal", fieldOf(t, verify["checks"], "id", "active_normal", "verdict") == "false")
	}
	note("timeouts", "alert", strings.Contains(alerts, "sandbox_timeout_high"))
	note("quota", "alert", strings.Contains(alerts, "quota_near"))
	note("degraded", "verify timeouts_low", negated(fieldOf(t, verify["checks"], "id", "timeouts_low", "verdict")))
	note("quota", "verify quota_free", negated(fieldOf(t, verify["checks"], "id", "quota_free", "verdict")))
	note("cleanup", "verify cleanup_recent", fieldOf(t, verify["checks"], "id", "cleanup_recent", "verdict"))

	doctor := run("doctor -o json").object(t)
	note("quota", "doctor", negated(fieldOf(t, doctor["items"], "check", "quota", "verdict")))
	for line, shape := range map[string]string{"cleanup status": "item", "cron check --layer stuck": "items"} {
		r := run(line + " -o json")
		if shape == "item" {
			note("cleanup", line, r.item(t)["verdict"])
		} else {
			note("cleanup", line, r.list(t, "items")[0]["verdict"])
		}
		note("cleanup", line+": exit code", map[int]string{0: "true", 7: "unknown", 10: "false"}[r.code])
	}
	return got
}

// bench is a bench over this fleet.
func (s staged) bench(t *testing.T) *bench {
	t.Helper()
	p := fake.New(fake.Options{Name: "prod", Now: atNoon, Quotas: []providers.Quota{{Name: "sandboxes", Used: &s.quota, Limit: new(100.0)}}})
	for i := range s.active {
		p.Add(running(fmt.Sprintf("live%04d", i), time.Minute))
	}
	for i := range 100 {
		seed := timedOut(fmt.Sprintf("over%04d", i))
		if i >= s.timedOut {
			seed.Sandbox.Exit = nil
		}
		p.Add(seed)
	}
	b := newBench(p).configure(t, "providers:\n  prod: {type: local}\n"+s.thresholds)
	if s.stood > 0 {
		b.seenEarlier(t, "prod", int64(s.active), s.stood)
	}
	if s.undecided {
		b.configureNothing(t).types = []providers.Type{{Name: "prod", Always: true}}
	}
	for i, r := range s.cleaned {
		at := noon.Add(-r.ago)
		w, err := journal.Create(journal.Dir(b.home+"/runs"), fmt.Sprintf("r-%s-%d", at.Format("20060102T150405"), i), func() time.Time { return at })
		require.NoError(t, err)
		require.NoError(t, w.Append(runs.EntryBegin, runs.Begin{Verb: "cleanup", Layer: string(cron.Stuck), Profiles: []runs.Profile{{Profile: "prod", Complete: true, Unowned: r.unowned}}}))
		end := runs.Conclusion{Succeeded: []string{"prod"}}
		if r.failed {
			end = runs.Conclusion{ExitCode: 8}
		}
		require.NoError(t, w.Append(runs.EntryConclusion, end))
		require.NoError(t, w.Close())
	}
	return b
}

// fieldOf is a field of the row in which key has this value.
func fieldOf(t *testing.T, rows any, key, value, field string) string {
	t.Helper()
	list, ok := rows.([]any)
	require.True(t, ok, "%v", rows)
	for _, row := range list {
		if r, ok := row.(map[string]any); ok && r[key] == value {
			return fmt.Sprint(r[field])
		}
	}
	t.Fatalf("no row has %s %s", key, value)
	return ""
}

func negated(verdict string) string {
	return map[string]string{"true": "false", "false": "true", "unknown": "unknown"}[verdict]
}
