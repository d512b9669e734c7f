package triage

import "time"

// InvestigationStep is one of the runbook's five steps (R15, R23, R31, R42, R51), with the time
// that it allows a person: 15 minutes in all (R58).
type InvestigationStep struct {
	ID    string
	Title string
	ETA   time.Duration
}

// InvestigationSteps are the steps in their order.
func InvestigationSteps() []InvestigationStep {
	return []InvestigationStep{
		{"count", "Check active sandbox count", 2 * time.Minute},
		{"stuck", "Identify stuck sandboxes", 3 * time.Minute},
		{"logs", "Examine sandbox logs", 5 * time.Minute},
		{"resources", "Check resource usage", 3 * time.Minute},
		{"cleanup", "Review cleanup job status", 2 * time.Minute},
	}
}
