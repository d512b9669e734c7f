package runbook

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx/internal/check"
	"sbx/internal/cron"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// PrometheusRule is one alerting rule.
type PrometheusRule struct {
	Alert       string
	Expr        string // "" = Without says why there is none
	For         time.Duration
	Severity    string
	Level       string // who acts first
	Summary     string
	Description string
	Runbook     string // its id; "" = none is for the alert
	URL         string // of its page
	Without     string
}

// Metrics that the rules read; a test holds them against those that are exported.
const (
	metricAlert       = "sbx_alert"
	metricLastSuccess = "sbx_cleanup_last_success_timestamp_seconds"
)

// OverdueAlert is the rule for what no alert of sbx can show: that it does not run.
const OverdueAlert = "sbx_cleanup_overdue"

// overdueRunbook is about it.
const overdueRunbook = "cleanup-not-running"

// PrometheusRules are rules over the figures that sbx exports, for the alerts that lead to runbooks,
// and for a cleanup that does not run. The pages are below base.
//
// sbx_alert is 1 from when a condition has held for its time, by the thresholds of each provider, so
// that the rules repeat neither.
func PrometheusRules(books []*Runbook, limits triage.Thresholds, base string) []PrometheusRule {
	var all []PrometheusRule
	page := func(b *Runbook) string { return strings.TrimRight(base, "/") + "/" + b.PageName() }
	for _, rule := range check.Alerts() {
		i := slices.IndexFunc(books, func(b *Runbook) bool { return slices.Contains(b.Metadata.Alerts, Word(rule.ID)) })
		if i < 0 {
			continue
		}
		held := "at once"
		if d := rule.Duration(limits); d > 0 {
			held = "for " + sandbox.FormatDuration(d)
		}
		all = append(all, PrometheusRule{
			Alert: rule.ID, Severity: string(rule.Severity), Level: string(rule.Level), Runbook: string(books[i].Metadata.ID), URL: page(books[i]),
			Expr:        fmt.Sprintf(`max by (provider) (%s{rule=%q}) == 1`, metricAlert, rule.ID),
			Summary:     rule.Title + " at {{ $labels.provider }}",
			Description: fmt.Sprintf("sbx: %s, %s. Next: sbx %s --provider {{ $labels.provider }}", rule.When(), held, rule.Next),
		})
	}
	i := slices.IndexFunc(books, func(b *Runbook) bool { return b.Metadata.ID == overdueRunbook })
	if i < 0 {
		return all
	}
	every := limits.CleanupEvery
	return append(all, PrometheusRule{
		Alert: OverdueAlert, Severity: string(triage.Critical), Level: string(check.LevelInfrastructure), Runbook: overdueRunbook, URL: page(books[i]), For: every,
		Expr:        fmt.Sprintf(`time() - max by (provider) (%s) > %s`, metricLastSuccess, strconv.FormatFloat(cron.Limit(every).Seconds(), 'f', -1, 64)),
		Summary:     "cleanup has not succeeded at {{ $labels.provider }} for two intervals, and the other figures of sbx are as old",
		Description: "sbx: verify.cleanup_recent. Next: sbx cron check",
	})
}

// WithoutRule are the alerts that have no rule here, with the reason.
func WithoutRule(books []*Runbook) []PrometheusRule {
	var all []PrometheusRule
	for _, rule := range check.Alerts() {
		if !slices.ContainsFunc(books, func(b *Runbook) bool { return slices.Contains(b.Metadata.Alerts, Word(rule.ID)) }) {
			all = append(all, PrometheusRule{Alert: rule.ID, Without: "none of these runbooks is for it"})
		}
	}
	for _, b := range books {
		for _, other := range b.Metadata.OtherAlerts {
			all = append(all, PrometheusRule{Alert: other, Runbook: string(b.Metadata.ID), Without: "it is an alert of another system"})
		}
	}
	return all
}
