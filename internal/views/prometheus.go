package views

import (
	"fmt"
	"io"
	"strings"

	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// PrometheusItem is an alerting rule, or an alert that has none.
type PrometheusItem struct {
	Alert       string  `json:"alert" table:""`            // The name of the alert.
	Severity    *string `json:"severity" table:""`         // warning or critical; null without a rule.
	ForSeconds  float64 `json:"for_seconds" table:""`      // How long the expression must hold.
	Expr        *string `json:"expr" table:""`             // The expression of PromQL; null without a rule.
	Level       *string `json:"level" table:",wide"`       // Who acts first: agents, infrastructure or vendor; null without a rule.
	Summary     *string `json:"summary" table:",wide"`     // One line for people; null without a rule.
	Description *string `json:"description" table:",wide"` // The condition and the next command; null without a rule.
	Runbook     *string `json:"runbook" table:",wide"`     // The runbook that it leads to; null for none.
	URL         *string `json:"url" table:",wide"`         // The address of its page; null without a rule.
	Without     *string `json:"without" table:",wide"`     // Why there is no rule; null where there is one.
}

// PrometheusColumns are the columns of a PrometheusItem.
func PrometheusColumns() []output.Column[runbook.PrometheusRule] {
	type rule = runbook.PrometheusRule
	return output.Columns(func(r rule) PrometheusItem {
		return PrometheusItem{
			r.Alert, orNil(r.Severity), output.Seconds(r.For), orNil(r.Expr), orNil(r.Level), orNil(r.Summary), orNil(r.Description), orNil(r.Runbook), orNil(r.URL), orNil(r.Without),
		}
	},
		output.Column[rule]{Name: "severity", Tone: func(r rule) output.Tone { return wordTone(r.Severity) }},
		output.Column[rule]{Name: "for_seconds", Text: func(r rule) string { return sandbox.FormatDuration(r.For) }},
	)
}

// ShowPrometheusRules prints alerting rules: to people and in a pipe as the file that Prometheus reads.
func ShowPrometheusRules(p *output.Printer, schema string, rules, without []runbook.PrometheusRule) error {
	if p.Format.Name() == output.Table && len(p.Columns) == 0 {
		_, err := io.WriteString(p.Stdout(), PrometheusText(rules, without))
		return err
	}
	return ShowRows(p, output.ListSpec[runbook.PrometheusRule]{Schema: schema, Columns: PrometheusColumns(), Empty: "no rules"}, append(rules, without...))
}

const prometheusHead = `# Alerting rules for Prometheus, written by "sbx runbook rules". The figures are those that
# "cleanup --textfile" and "reconcile --textfile" write for the node exporter. sbx_alert is 1 once a
# condition has held for its time, by the thresholds of sbx, so that a rule has no time of its own;
# it is absent for an alert whose figure no run has read.
groups:
  - name: sbx
    rules:
`

// PrometheusText is the file of rules.
func PrometheusText(rules, without []runbook.PrometheusRule) string {
	var b strings.Builder
	b.WriteString(prometheusHead)
	for _, r := range rules {
		fmt.Fprintf(&b, "      - alert: %s\n        expr: %s\n", r.Alert, yamlQuote(r.Expr))
		if r.For > 0 {
			fmt.Fprintf(&b, "        for: %s\n", sandbox.FormatDuration(r.For))
		}
		fmt.Fprintf(&b, "        labels:\n          severity: %s\n          level: %s\n", r.Severity, r.Level)
		fmt.Fprintf(
			&b, "        annotations:\n          summary: %s\n          description: %s\n          runbook_url: %s\n", yamlQuote(r.Summary),
			yamlQuote(r.Description), yamlQuote(r.URL),
		)
	}
	if len(rules) == 0 {
		b.WriteString("      []\n")
	}
	for _, r := range without {
		b.WriteString("# " + strings.ReplaceAll(r.Alert, "\n", " ") + " has no rule: " + r.Without + "\n")
	}
	return b.String()
}

// yamlQuote writes a text between single quotes.
func yamlQuote(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, "\n", " "), "'", "''") + "'"
}
