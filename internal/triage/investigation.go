package triage

import "time"

// StuckRunbook is the id of the runbook for stuck sandboxes.
const StuckRunbook = "sandbox-stuck"

// InvestigationStep is a step of the runbook for stuck sandboxes, with the time that it allows a person.
type InvestigationStep struct {
	Number string // "1"
	ID     string
	Word   string // what every surface calls it
	Title  string
	ETA    time.Duration // 0 = its parts have their own
}

// Label names the step as every surface does: "4 usage".
func (s InvestigationStep) Label() string { return s.Number + " " + s.Word }

// StuckSteps are the seven steps in their order: the investigation, then what is done, and the proof.
func StuckSteps() []InvestigationStep {
	return append(InvestigationSteps(),
		InvestigationStep{"6", "end", "end", "Do what belongs to the cause that the diagnosis names", 0},
		InvestigationStep{"7", "verify", "verify", "See that it has helped", 0},
	)
}

// InvestigationSteps are the first five (R15, R23, R31, R42, R51), 15 minutes in all (R58).
func InvestigationSteps() []InvestigationStep {
	return []InvestigationStep{
		{"1", "count", "count", "Check active sandbox count", 2 * time.Minute},
		{"2", "stuck", "stuck", "Identify stuck sandboxes", 3 * time.Minute},
		{"3", "logs", "logs", "Examine sandbox logs", 5 * time.Minute},
		{"4", "resources", "usage", "Check resource usage", 3 * time.Minute},
		{"5", "cleanup", "cleanup", "Review cleanup job status", 2 * time.Minute},
	}
}

// StuckStep is one of StuckSteps by its id; false = it is none.
func StuckStep(id string) (InvestigationStep, bool) {
	for _, s := range StuckSteps() {
		if s.ID == id {
			return s, true
		}
	}
	return InvestigationStep{}, false
}
