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
