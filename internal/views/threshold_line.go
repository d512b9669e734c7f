package views

import (
	"strconv"
	"strings"

	"sbx/internal/ops/look"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// ThresholdLine names the limits that figures are compared with: "limits: stuck over 10m and idle 1m; active 20;
// timeouts 5%; quota 80%", and behind those of the most profiles the others; "" = there are no figures.
func ThresholdLine(all []look.Figures) string {
	profiles := map[string][]string{}
	counts := map[string]int{}
	for _, f := range all {
		text := limitsText(f.Limits)
		profiles[text] = append(profiles[text], f.Provider)
		counts[text]++
	}
	if len(all) == 0 {
		return ""
	}
	texts := sandbox.SortCounts(counts)
	for i, text := range texts[1:] {
		texts[i+1] = strings.Join(profiles[text], ", ") + ": " + text
	}
	return "limits: " + strings.Join(texts, " | ")
}

func limitsText(t triage.Thresholds) string {
	stuck := "stuck over " + sandbox.FormatDuration(t.StuckAge)
	if !t.AgeOnly {
		stuck += " and idle " + sandbox.FormatDuration(t.Inactivity)
	}
	return strings.Join([]string{
		stuck, "active " + strconv.Itoa(t.ActiveMax), "timeouts " + Decimal(t.TimeoutRateHigh*100, 1) + "%", "quota " + Decimal(t.QuotaNear*100, 1) + "%",
	}, "; ")
}
