package views

import (
	"strconv"
	"strings"

	"sbx/internal/ops"
	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// ThresholdLine names the limits that figures are compared with, once where those of all profiles are equal:
// "limits: stuck over 10m and idle 1m; active 20; timeouts 5%; quota 80%"; "" = there are no figures.
func ThresholdLine(all []ops.Figures) string {
	var texts, profiles []string
	equal := true
	for _, f := range all {
		text := limitsText(f.Limits)
		equal = equal && (len(texts) == 0 || text == texts[0])
		texts, profiles = append(texts, text), append(profiles, f.Provider+": "+text)
	}
	switch {
	case len(all) == 0:
		return ""
	case equal:
		return "limits: " + texts[0]
	}
	return "limits: " + strings.Join(profiles, " | ")
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
