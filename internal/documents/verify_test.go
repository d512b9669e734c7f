package documents

import "sbx/internal/sandbox"

// verification is the result of the five checks.
type verification struct {
	// true where every target is met, false where one is missed, else unknown.
	Verdict sandbox.Verdict `json:"verdict"`
	// When it was checked.
	At *moment `json:"at"`
	// How many rounds it took; more than one only with --until-ok.
	Rounds int `json:"rounds"`
	// The targets.
	Checks []target `json:"checks"`
	// The alerts that are pending or firing.
	Alerts []openAlert `json:"alerts"`
}

// openAlert is an alert at one provider that is pending or firing.
type openAlert struct {
	// The rule; docs/ALERTS.md lists them.
	Rule string `json:"rule"`
	// The profile.
	Provider string `json:"provider"`
	// critical or warning.
	Severity string `json:"severity"`
	// pending: its condition holds, but not for long enough. firing: people were notified.
	Phase string `json:"phase"`
	// Since when it holds, later by the time in which nobody looked.
	Since *moment `json:"since"`
	// How long it has held.
	HeldSeconds float64 `json:"held_seconds"`
	// How long it has to hold until people are notified.
	HoldForSeconds float64 `json:"hold_for_seconds"`
	// The time since then in which nobody looked; it does not count.
	GapSeconds float64 `json:"gap_seconds"`
	// The comparisons of its condition.
	Evidence []string `json:"evidence"`
}

// target is one figure beside its target.
type target struct {
	// Its number in the runbook.
	ID string `json:"id"`
	// What is measured.
	Title string `json:"title"`
	// Whether the target is met.
	Verdict sandbox.Verdict `json:"verdict"`
	// Every provider answered, and there is nothing to tell the figure from yet: it counts as met.
	NoData bool `json:"no_data"`
	// The figure of the provider that is worst; null where none is known.
	Value *float64 `json:"value"`
	// The unit of value and target: count, seconds or share.
	Unit string `json:"unit"`
	// The target, with its sign.
	Target *string `json:"target"`
	// How many samples the value is from.
	Samples int `json:"samples"`
	// What the figure covers; null for nothing to add.
	Why *string `json:"why"`
	// What was seen, for each provider or sandbox.
	Evidence []evidence `json:"evidence"`
}
