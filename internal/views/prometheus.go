package views

import (
	"fmt"
	"io"
	"strings"

	"sbx/internal/output"
	"sbx/internal/runbook"
	"sbx/internal/sandbox"
)

// PrometheusColumns are those of `sbx runbook rules`.
func PrometheusColumns() []output.Column[Record] {
	return recordColumns("alert severity for_seconds expr | level summary description runbook url without")
}

// ShowPrometheusRules prints alerting rules: to people and in a pipe as the file that Prometheus reads.
func ShowPrometheusRules(p *output.Printer, schema string, rules, without []runbook.PrometheusRule) error {
	if p.Format.Name() == output.Table && len(p.Columns) == 0 {
		_, err := io.WriteString(p.Stdout(), PrometheusText(rules, without))
		return err
	}
	var rows []Record
	for _, r := range append(rules, without...) {
		rows = append(rows, Record{
			"alert": r.Alert, "expr": TextOrNil(r.Expr), "for_seconds": output.Seconds(r.For), "severity": TextOrNil(r.Severity), "level": TextOrNil(r.Level),
			"summary": TextOrNil(r.Summary), "description": TextOrNil(r.Description), "runbook": TextOrNil(r.Runbook), "url": TextOrNil(r.URL), "without": TextOrNil(r.Without),
		})
	}
	return showRecords(p, output.ListSpec[Record]{Schema: schema, Columns: PrometheusColumns(), Empty: "no rules"}, rows, nil)
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
		fmt.Fprintf(&b, "        annotations:\n          summary: %s\n          description: %s\n          runbook_url: %s\n", yamlQuote(r.Summary), yamlQuote(r.Description), yamlQuote(r.URL))
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
