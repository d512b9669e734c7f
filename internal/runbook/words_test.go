package runbook_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/check"
	"sbx/internal/cond"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
	"sbx/internal/selector"
	"sbx/internal/triage"
)

// TestConditionsOfShippedRunbooksHaveWords: no name that only conditions use is shown to people, whatever is
// known of it.
func TestConditionsOfShippedRunbooksHaveWords(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile(`\w\.\w*[a-z]\w*|\w_\w|==|!=|->|"`)
	seen := 0
	for _, book := range shipped(t).Books {
		schema := runbook.Schema(book.Spec.Vars)
		check := func(text runbook.Condition) {
			if text == "" {
				return
			}
			seen++
			c, err := cond.Compile(string(text), schema)
			require.NoError(t, err, text)
			for _, facts := range []*runbook.Facts{known(), {}} {
				words := c.Explain(facts).Words()
				assert.NotEmpty(t, words, text)
				assert.NotRegexp(t, code, words, "%s: %s", book.Metadata.ID, text)
			}
		}
		steps := append(book.Spec.Steps, book.Spec.Verification...)
		for _, c := range book.Spec.Causes {
			steps = append(steps, c.Steps...)
		}
		for _, p := range book.Spec.Procedures {
			steps = append(steps, p.Steps...)
		}
		for _, s := range steps {
			check(s.Check)
			check(s.WaitUntil)
			check(s.When)
			check(s.Expect)
		}
		for _, e := range book.Spec.Escalation {
			check(e.When)
			if e.Alert != "" {
				check(runbook.Condition("alert." + e.Alert))
			}
		}
	}
	assert.Greater(t, seen, 30)
}

// known is a provider of which everything is known.
func known() *runbook.Facts {
	return &runbook.Facts{
		Subject: check.Subject{Figures: triage.FleetSignals{Active: new(int64(236)), QuotaUsed: new(0.96), CleanupFailures: new(int64(3))}, Limits: triage.DefaultThresholds(), Stuck: new(int64(26)), Orphans: new(int64(0)), Corrupt: new(int64(2))},
		Checks:  map[string]sandbox.Verdict{"quota_free": sandbox.False}, Cause: "infinite_loop", Confidence: sandbox.Probable,
		Sandbox: selector.NewSubject(sandbox.Sandbox{State: sandbox.StateRunning}, now(), triage.Verdict{}, nil),
	}
}

func TestConditionsInWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"stats.active > stats.thresholds.active_max": "236 active, limit 20",
		"stats.active < stats.stuck":                 "236 active, target < 26 stuck",
		"stats.active - stats.stuck > 5":             "210 active - stuck, limit 5",
		"stats.stuck > 0":                            "26 stuck",
		"stats.stuck == 0":                           "26 stuck, target 0",
		"quota.used < thresholds.quota_near":         "quota used 96%, target < 80%",
		"quota.used >= 0.9":                          "quota used 96%, limit 90%",
		"0.9 <= quota.used":                          "quota used 96%",
		"stats.timeout_rate > 5%":                    "timeout rate not known",
		"stats.timeout_rate == nil":                  "timeout rate not known",
		`diagnose.cause == "infinite_loop" or diagnose.cause == "external_hang"`: "likeliest cause: busy loop",
		`diagnose.cause != "none"`:                     "likeliest cause: busy loop",
		"verify.quota_free == false":                   "target met for use of a quota: no",
		"alert.quota_near":                             "a quota is nearly used up: yes",
		`not (sandbox.state == "running")`:             "state: running",
		"records.differ == 0 and records.orphans == 0": "2 contradictions, target 0; 0 orphans, target 0",
		"sandbox.age_seconds > 10m":                    "age not known: the provider does not report it",
	} {
		c, err := cond.Compile(text, runbook.Schema(nil))
		require.NoError(t, err, text)
		assert.Equal(t, want, c.Explain(known()).Words(), text)
	}
	c, err := cond.Compile(`sandbox.state == "running"`, runbook.Schema(nil))
	require.NoError(t, err)
	assert.Equal(t, "state not known: known only with --ref REF", c.Explain(&runbook.Facts{}).Words())
}
