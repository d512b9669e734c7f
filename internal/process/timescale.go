package process

import "time"

// TimeScale is how many times longer than usual the limits in real time are that sbx sets for its own machine: a slow
// store, a supervisor that must answer, output that must be copied. 0 means 1. Tests set it, since the machine that
// runs them may give a process a twentieth of a core; limits that an operator has set are never stretched.
type TimeScale int

// Limit is usual on this machine.
func (s TimeScale) Limit(usual time.Duration) time.Duration { return usual * time.Duration(max(1, s)) }
