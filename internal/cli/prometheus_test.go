package cli_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sbx/internal/runbook"
	"sbx/internal/triage"
	"sbx/internal/views"
	"sbx/internal/yamltext"
)

// rulesFile is a file of alerting rules as Prometheus reads it.
type rulesFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// TestPrometheusRulesAreYAML: the file is one document with one group, also for an address with a quote
// in it, and for no rule at all.
func TestPrometheusRulesAreYAML(t *testing.T) {
	t.Parallel()
	catalog, err := runbook.Library{Shipped: os.DirFS("../../runbooks")}.Load(t.Context())
	require.NoError(t, err)
	read := func(books []*runbook.Runbook) rulesFile {
		rules := runbook.PrometheusRules(books, triage.DefaultThresholds(), "https://wiki.example/it's")
		root, mistakes := yamltext.Parse([]byte(views.PrometheusText(rules, runbook.WithoutRule(books))))
		require.Empty(t, mistakes)
		var file rulesFile
		require.NoError(t, root.Decode(&file))
		require.Len(t, file.Groups, 1)
		require.Len(t, file.Groups[0].Rules, len(rules))
		return file
	}
	for _, rule := range read(catalog.Books).Groups[0].Rules {
		assert.NotEmpty(t, rule.Expr, rule.Alert)
		assert.Contains(t, []string{"warning", "critical"}, rule.Labels["severity"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		assert.Regexp(t, `^https://wiki\.example/it's/[a-z0-9-]+\.md$`, rule.Annotations["runbook_url"], rule.Alert)
		if rule.Alert == runbook.OverdueAlert {
			assert.Equal(t, "5m", rule.For)
		}
	}
	assert.Empty(t, read(nil).Groups[0].Rules)
}
