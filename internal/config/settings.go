package config

import (
	"slices"
	"time"

	"sbx/internal/triage"
)

// Setting is one setting with a default, for texts that name it instead of writing the number.
type Setting struct {
	Key, Default, Help string
	Unit               Unit
	// Amount reads a threshold in its unit; nil for other settings.
	Amount func(triage.Thresholds) float64
}

// Unit is what the amount of a threshold counts.
type Unit string

// The closed list.
const (
	UnitCount   Unit = "count"
	UnitSeconds Unit = "seconds"
	UnitRatio   Unit = "ratio" // 1 = 100 %
)

// DefaultSettings are the thresholds, limits and settings of task launch that have a default.
func DefaultSettings() []Setting {
	var all []Setting
	t := triage.DefaultThresholds()
	for _, m := range thresholdSettings() {
		unit := UnitCount
		switch m.of(&t).(type) {
		case *time.Duration:
			unit = UnitSeconds
		case *float64:
			unit = UnitRatio
		}
		all = append(all, Setting{
			Key: scope{}.settingKey(m.name), Default: m.text(&t), Help: m.help, Unit: unit,
			Amount: func(t triage.Thresholds) float64 { return m.amount(&t) },
		})
	}
	for _, s := range slices.Concat(limitSettings(), runSettings()) {
		all = append(all, Setting{Key: s.settingKey(), Default: s.fallback, Help: s.help})
	}
	return slices.DeleteFunc(all, func(s Setting) bool { return s.Default == "" })
}
