// Package drill stages a real incident on the local provider and performs the investigation
// of the "sandbox stuck" runbook on it: sandboxes that loop, hang, leak, fall silent or
// have no owner, and a healthy one that must survive. It classifies each by the rules of
// all other verbs, ends the stuck ones, and proves that nothing is left.
//
// The programs are real processes in real limits, and a wrong verdict makes the drill fail.
// Rules about what is stuck do not belong here; they are in triage.
package drill
