package views

import (
	"fmt"
	"strings"

	"sbx/internal/alert"
	"sbx/internal/output"
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

// alertList are the alerts for documents.
func alertList(all []alert.Alert) []any {
	list := make([]any, 0, len(all))
	for _, a := range all {
		evidence := a.State.Evidence
		if evidence == nil {
			evidence = []string{}
		}
		list = append(list, output.Fields{
			{Key: "rule", Value: a.Rule.ID},
			{Key: "provider", Value: a.Provider},
			{Key: "severity", Value: string(a.Rule.Severity)},
			{Key: "phase", Value: string(a.State.Phase)},
			{Key: "since", Value: output.Time(a.State.Since)},
			{Key: "held_seconds", Value: max(0, a.At.Sub(a.State.Since).Round(1e9).Seconds())},
			{Key: "hold_for_seconds", Value: a.HoldFor.Seconds()},
			{Key: "gap_seconds", Value: a.State.GapNanoseconds.Seconds()},
			{Key: "evidence", Value: evidence},
		})
	}
	return list
}
