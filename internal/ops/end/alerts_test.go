package end_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/cleanup"
	"sbx/internal/config"
	"sbx/internal/fault"
	"sbx/internal/ops/end"
	"sbx/internal/selector"
	"sbx/internal/testkit/fake"
	"sbx/internal/testkit/opstest"
)

func stuckRule() cleanup.Rule { return cleanup.Rule{Selector: selector.Selector{Stuck: true}} }

// TestAlertOfARun: a cleanup that fails tells each time, the good one after it sends recovered
// once, and a plan evaluates nothing.
func TestAlertOfARun(t *testing.T) {
	t.Parallel()
	c := opstest.NewClockSite(t, opstest.Calm, opstest.Crowd(21))
	run := func(broken bool, plan bool) {
		if c.Fakes[0] = opstest.Crowd(4); broken {
			c.Fakes[0].Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "away")})
		}
		r := &opstest.Recorder{}
		env := c.Start(t, "host-1")
		if plan {
			_, _ = end.PlanCleanup(t.Context(), env, end.CleanupRequest{Rule: stuckRule()}, r)
			return
		}
		_, _ = end.Cleanup(t.Context(), env, end.CleanupRequest{Rule: stuckRule(), Yes: true, Wait: time.Second}, r)
		env.SendNotifications(t.Context())
	}
	for i, said := range [][]string{{"failed host-1"}, {"failed host-1"}, {"failed host-1", "cleanup_failing alert host-1"}, {"failed host-1"}} {
		before := len(c.Said(t))
		run(true, false)
		assert.ElementsMatch(t, said, c.Said(t)[before:], "run %d", i)
		c.Pass(5 * time.Minute)
	}
	run(false, true)
	assert.Len(t, c.Said(t), 5)
	run(false, false)
	run(false, false)
	assert.ElementsMatch(t, []string{"recovered host-1", "cleanup_failing recovered host-1"}, c.Said(t)[5:])
}

// TestAGoodRunElsewhereIsNoRecovery: what began at one profile, or by one rule, does not end by a good
// run at another profile or by another rule; the same run does end it.
func TestAGoodRunElsewhereIsNoRecovery(t *testing.T) {
	t.Parallel()
	good, bad := fake.New(fake.Options{Name: "prod"}), fake.New(fake.Options{Name: "other"})
	c := opstest.NewClockSite(t, opstest.OneProfile, good, bad)
	run := func(rule cleanup.Rule, only ...string) {
		if c.Fakes = []*fake.Provider{good, bad}; len(only) > 0 {
			c.Fakes = c.Fakes[:1]
		}
		r := &opstest.Recorder{}
		env := c.Start(t, "host-1")
		load := env.Config
		env.Config = func() (*config.Config, error) {
			read, err := load()
			if err == nil {
				other := read.Profiles[0]
				other.Name = "other"
				read.Profiles, read.Use = append(read.Profiles, other), only
			}
			return read, err
		}
		_, err := end.Cleanup(t.Context(), env, end.CleanupRequest{Rule: rule, Yes: true, Wait: time.Second}, r)
		require.NoError(t, err)
		env.SendNotifications(t.Context())
		c.Pass(5 * time.Minute)
	}
	bad.Break(fake.Fault{Op: fake.OpList, Err: fault.New(fault.KindUnavailable, "away")})
	run(stuckRule())
	require.Len(t, c.Said(t), 1)
	bad.Mend()
	run(stuckRule(), "prod")
	run(tenMinutes().Rule)
	require.Len(t, c.Said(t), 1, "the same has not succeeded yet")
	run(stuckRule())
	assert.Equal(t, "recovered host-1", c.Said(t)[1])
}

// TestAlertOfRecords: two records that contradict what runs are told by reconcile --check, with
// the sandboxes, and not by a plan.
func TestAlertOfRecords(t *testing.T) {
	t.Parallel()
	c := opstest.NewClockSite(t, opstest.OneProfile, opstest.Prod("live0001"))
	record(t, c.Site, "live0001", "young001", "label001", "gone0001", "gone0002")
	compare := func(check bool) {
		r := &opstest.Recorder{}
		env := c.Start(t, "host-1")
		_, err := end.Reconcile(t.Context(), env, end.ReconcileRequest{Records: "store", Check: check, Textfile: "sbx.prom", Rules: usualRules(check)}, r)
		require.NoError(t, err)
		env.SendNotifications(t.Context())
	}
	compare(false)
	assert.Empty(t, c.Said(t))
	for range 3 {
		compare(true)
		c.Pass(6 * time.Minute)
	}
	assert.ElementsMatch(t, []string{"found host-1", "state_corruption alert host-1", "found host-1", "found host-1"}, c.Said(t))
	for _, m := range c.Messages(t) {
		assert.Len(t, m.Items, 2, m.Kind)
	}
	text, err := os.ReadFile(filepath.Join(c.Dir, "sbx.prom"))
	require.NoError(t, err)
	for _, line := range []string{
		`sbx_alert{layer="reconcile",provider="prod",rule="state_corruption",severity="critical"} 1`,
		`sbx_alert{layer="reconcile",provider="prod",rule="orphans_found",severity="warning"} 0`,
		`sbx_reconcile_rows{class="record_only",layer="reconcile",provider="prod"} 2`,
		`sbx_reconcile_found{layer="reconcile",provider="prod"} 2`,
		`sbx_reconcile_exit_code{layer="reconcile"} 10`,
	} {
		assert.Contains(t, string(text), line+"\n")
	}
	assert.NotContains(t, string(text), "sandbox_leak_detected", "this verb does not know how many run")
}
