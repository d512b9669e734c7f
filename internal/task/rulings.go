package task

import (
	"strconv"

	"sbx/internal/sandbox"
)

// Ruling is what a class of exits means for a next attempt, in words, for a page.
type Ruling struct {
	Class sandbox.Class
	Again string // how often
	Why   string
}

// Rulings are the rules that hold without --retry-on, class by class.
func Rulings() []Ruling {
	var list []Ruling
	never := []sandbox.Class{sandbox.ClassAgentError, sandbox.ClassUsage, sandbox.ClassAuth, sandbox.ClassEnvironment, sandbox.ClassTimeout, sandbox.ClassKilledByUs, sandbox.ClassStopped}
	for _, c := range append(RetryOn(), never...) {
		r := retryPolicyOf(c)
		list = append(list, Ruling{c, r.frequencyText(), r.why})
	}
	return list
}

func (r retryPolicy) frequencyText() string {
	switch {
	case r.limit == 0:
		return "never"
	case r.free:
		return "up to " + strconv.Itoa(InfraAttempts-1) + " times, burning no attempt"
	case r.limit < 0:
		return "while there are attempts"
	}
	return "once"
}
