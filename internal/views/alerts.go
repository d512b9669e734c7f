package views

import (
	"fmt"
	"strings"
	"time"

	"sbx/internal/alert"
	"sbx/internal/output"
	"sbx/internal/triage"
)

// AlertsLine says in one line what fires and what is pending; "" = nothing.
func AlertsLine(all []alert.Alert) string {
	var parts []string
	for _, phase := range []alert.Phase{alert.Firing, alert.Pending} {
		var texts []string
		for _, a := range all {
			if a.State.Phase == phase {
				texts = append(texts, strings.Replace(a.Describe(), ": "+string(phase)+" for ", " for ", 1))
			}
		}
		if len(texts) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s: %s", alertCount(len(texts)), phase, strings.Join(texts, "; ")))
		}
	}
	return strings.Join(parts, ". ")
}

func alertCount(n int) string {
	if n == 1 {
		return "1 alert"
	}
	return fmt.Sprintf("%d alerts", n)
}

// AlertItem is an alert at one provider that is pending or firing.
type AlertItem struct {
	Rule           string          `json:"rule"`             // The rule; docs/ALERTS.md lists them.
	Provider       string          `json:"provider"`         // The profile.
	Severity       triage.Severity `json:"severity"`         // critical or warning.
	Phase          alert.Phase     `json:"phase"`            // pending: its condition holds, but not for long enough. firing: people were notified.
	Since          *time.Time      `json:"since"`            // Since when it holds, later by the time in which nobody looked.
	HeldSeconds    float64         `json:"held_seconds"`     // How long it has held.
	HoldForSeconds float64         `json:"hold_for_seconds"` // How long it has to hold until people are notified.
	GapSeconds     float64         `json:"gap_seconds"`      // The time since then in which nobody looked; it does not count.
	Evidence       []string        `json:"evidence"`         // The comparisons of its condition.
}

// alertItems are the alerts for documents.
func alertItems(all []alert.Alert) []AlertItem {
	items := make([]AlertItem, len(all))
	for i, a := range all {
		items[i] = AlertItem{
			Rule: a.Rule.ID, Provider: a.Provider, Severity: a.Rule.Severity, Phase: a.State.Phase, Since: output.Time(a.State.Since),
			HeldSeconds: max(0, a.At.Sub(a.State.Since).Round(time.Second).Seconds()), HoldForSeconds: a.HoldFor.Seconds(),
			GapSeconds: a.State.GapNanoseconds.Seconds(), Evidence: a.State.Evidence,
		}
	}
	return items
}
