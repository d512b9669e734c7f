// Package schedule chooses the schedules that a simulation plays: seeds, half of them fixed
// and half from a start that changes with each run, and every sequence of a bounded number
// of choices.
//
// Only tests use it. It knows nothing of what is simulated: a simulation asks for numbers.
package schedule
