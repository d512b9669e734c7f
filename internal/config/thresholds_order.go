package config

import (
	"fmt"
	"slices"

	"sbx/internal/triage"
)

// thresholdOrder is a pair of limits of which low may not be above high.
type thresholdOrder struct {
	low, high string
	why       string // what it would mean
	// yields is the one that follows the other where nobody has set it at the same place; "" =
	// neither does.
	yields string
	odd    bool // it is accepted, and told
}

func thresholdOrders() []thresholdOrder {
	return []thresholdOrder{
		{low: "active_normal", high: "active", why: "a normal load would be critical"},
		{low: "active", high: "escalate.active", why: "it would be escalated before it is critical"},
		{low: "timeout_rate_good", high: "timeout_rate_high", why: "a good rate would be an alert"},
		{low: "watch_age", high: keyStuckAge, yields: "watch_age", why: "a sandbox would be stuck before it is worth a look"},
		{low: "inactivity", high: "busy_silence", yields: "busy_silence", why: "a busy sandbox would be stuck before an idle one"},
		{low: "inactivity", high: keyStuckAge, odd: true, why: "every sandbox that was silent for so long is older than stuck_age, which decides nothing: raise it"},
		{low: "sustained", high: "escalate.for", odd: true, why: "the escalation comes before the alert"},
	}
}

// fullShares are percentages that mean something else at 100%.
func fullShares() []thresholdOrder {
	return []thresholdOrder{
		{low: "timeout_rate_high", why: "no rate is above it, so it would never alert"},
		{low: "quota_near", odd: true, why: "it alerts only when the quota is used up"},
	}
}

func thresholdNamed(name string) thresholdSetting {
	all := thresholdSettings()
	return all[slices.IndexFunc(all, func(m thresholdSetting) bool { return m.name == name })]
}

// checkThresholds refuses limits with which a rule could never hold, such as a good rate above the
// high one, and keeps a remark on those that are only odd. Only limits of the scope itself are
// compared, so that one mistake is told once.
func (l *loader) checkThresholds(of scope, t triage.Thresholds) {
	set := map[string]entry{}
	for _, m := range thresholdSettings() {
		if e, ok := l.layers.lookup(of.settingKey(m.name)); ok {
			set[m.name] = e
			m.put(&t, e.text)
		}
	}
	for _, order := range thresholdOrders() {
		low, high := thresholdNamed(order.low), thresholdNamed(order.high)
		for _, m := range []thresholdSetting{low, high} {
			e, chosen := set[m.name]
			if chosen && (order.yields == "" || order.yields == m.name) && low.amount(&t) > high.amount(&t) {
				l.tellOrder(order, "%s: thresholds: %s (%s) is above %s (%s): %s", e.origin, low.name, low.text(&t), high.name, high.text(&t), order.why)
				break
			}
		}
	}
	for _, full := range fullShares() {
		share := thresholdNamed(full.low)
		if e, chosen := set[share.name]; chosen && share.amount(&t) >= 1 {
			l.tellOrder(full, "%s: thresholds: %s is 100%%: %s", e.origin, share.name, full.why)
		}
	}
}

func (l *loader) tellOrder(order thresholdOrder, format string, args ...any) {
	if order.odd {
		l.config.Remarks = append(l.config.Remarks, fmt.Sprintf(format, args...))
		return
	}
	l.addError(format, args...)
}
