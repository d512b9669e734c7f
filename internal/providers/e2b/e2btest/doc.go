// Package e2btest is a strict fake of E2B's API and of envd inside its
// sandboxes, and of Novita's dialect of both: a state machine in memory, whose
// commands are real processes of this machine.
package e2btest
