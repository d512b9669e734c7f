package commands

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/metrics"
	"sbx/internal/runbook"
)

// exportedMetrics is the text of all figures that are exported.
func exportedMetrics() string {
	age := 1.0
	cleanup := metrics.Cleanup{Profiles: []metrics.ProfileFigures{{Profile: "prod", Kept: map[string]int{"young": 1}, OldestEligibleSeconds: &age, Ages: []time.Duration{time.Minute}}}}.Set()
	cleanup.AddAlerts([]metrics.Alert{{Rule: "sandbox_stuck", Provider: "prod", Severity: "warning"}})
	return cleanup.Text()
}

// TestPrometheusRulesReadWhatIsExported: the metrics and labels of each rule are those of the metrics
// room, and each alert that leads to a runbook has a rule.
func TestPrometheusRulesReadWhatIsExported(t *testing.T) {
	t.Parallel()
	b := newBench().configureNothing(t)
	text := b.run(t, "runbook rules").stdout
	exported := exportedMetrics()
	names := regexp.MustCompile(`\bsbx_[a-z_]+\b`)
	rows := b.run(t, "runbook rules -o json").list(t, "items")
	require.Len(t, rows, 13)
	var alerts []string
	for _, row := range rows {
		name, _ := row["alert"].(string)
		alerts = append(alerts, name)
		expr, _ := row["expr"].(string)
		found := names.FindAllString(expr, -1)
		require.NotEmpty(t, found, name)
		for _, metric := range found {
			assert.Contains(t, exported, "# TYPE "+metric+" ", name)
		}
		for _, label := range regexp.MustCompile(`[{(]([a-z]+)[=)]`).FindAllStringSubmatch(expr, -1) {
			if label[1] != "provider" {
				assert.Contains(t, exported, label[1]+`="`, name)
			}
		}
		if name != runbook.OverdueAlert {
			assert.Equal(t, fmt.Sprintf("runbooks/%s.md", row["runbook"]), row["url"], name)
			assert.FileExists(t, fmt.Sprintf("../../%s", row["url"]), name)
		}
		assert.Contains(t, text, "      - alert: "+name+"\n")
	}
	assert.Contains(t, alerts, "sandbox_stuck")
	assert.Contains(t, alerts, runbook.OverdueAlert)

	one := b.run(t, "runbook rules state-drift").stdout
	assert.Contains(t, one, "- alert: orphans_found\n")
	assert.NotContains(t, one, "- alert: sandbox_stuck\n")
	assert.Contains(t, one, "# sandbox_stuck has no rule: none of these runbooks is for it\n")
	assert.Equal(t, 5, b.run(t, "runbook rules nosuch").code)
	b.configureAnew(t, "thresholds: {cleanup_every: 7m}\n")
	assert.Contains(t, b.run(t, "runbook rules").stdout, "time() - max by (provider) (sbx_cleanup_last_success_timestamp_seconds) > 840'\n        for: 7m\n")
}
