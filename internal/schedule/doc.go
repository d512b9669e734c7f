// Package schedule chooses the schedules that a simulation plays: seeds, half of
// them fixed and half from a start that changes with each run, and every sequence
// of a bounded number of choices.
//
// It serves tests alone. It knows nothing of what is simulated: a simulation asks
// for numbers, and this room decides which.
package schedule
