package task

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"sbx/internal/sandbox"
)

// MaxDelay bounds the pause between two attempts.
const MaxDelay = 60 * time.Second

// retryPolicy is whether and how an attempt is repeated after a class of exits.
type retryPolicy struct {
	limit  int    // how many exits of the class are retried; 0 = none, -1 = all
	free   bool   // the infrastructure failed: an attempt whose program cannot have run is not counted
	memory bool   // only with more memory
	why    string // for the report
}

func retryPolicyOf(c sandbox.Class) retryPolicy {
	switch c {
	case sandbox.ClassOOM:
		return retryPolicy{limit: 1, memory: true, why: "it ran out of memory: retry with twice as much"}
	case sandbox.ClassKilledUnknown:
		return retryPolicy{limit: -1, why: "it was killed, and it is unknown by whom"}
	case sandbox.ClassCrash, sandbox.ClassUnknown:
		return retryPolicy{limit: 1, why: "it may be transient: retry once"}
	case sandbox.ClassInfra, sandbox.ClassLauncher, sandbox.ClassTransport, sandbox.ClassGone:
		return retryPolicy{limit: -1, free: true, why: "the infrastructure failed, not the program"}
	case sandbox.ClassAgentError:
		return retryPolicy{why: "the program itself failed and would fail again"}
	case sandbox.ClassUsage:
		return retryPolicy{why: "the program was called wrongly, or panicked"}
	case sandbox.ClassAuth:
		return retryPolicy{why: "the provider refused the credentials"}
	case sandbox.ClassEnvironment:
		return retryPolicy{why: "the command or its folder was not found, or it is not executable"}
	case sandbox.ClassTimeout:
		return retryPolicy{why: "a limit of sbx ended it"}
	case sandbox.ClassKilledByUs:
		return retryPolicy{why: "sbx terminated it on purpose"}
	case sandbox.ClassStopped:
		return retryPolicy{why: "it was stopped"}
	case sandbox.ClassOK:
	}
	return retryPolicy{why: "a " + string(c) + " is not retried"}
}

// RetryOn lists the classes that are retried without --retry-on.
func RetryOn() []sandbox.Class {
	return []sandbox.Class{
		sandbox.ClassOOM, sandbox.ClassKilledUnknown, sandbox.ClassCrash, sandbox.ClassUnknown,
		sandbox.ClassInfra, sandbox.ClassLauncher, sandbox.ClassTransport, sandbox.ClassGone,
	}
}

// Next decides what comes after the last attempt, which has ended. roll in [0,1) is the
// jitter.
func (t *Task) Next(roll float64) Retry {
	a := t.Last()
	if a == nil || a.Exit == nil {
		return Retry{Why: "its end is unknown"}
	}
	if a.neverEntered() { // nothing was tried: no attempt is counted, no pause is made, and the place stays
		if t.pastDeadline() {
			return Retry{Free: true, Why: "the deadline leaves no time for another attempt"}
		}
		return Retry{Again: true, Free: true, Why: "its sandbox has ended: a new one is created"}
	}
	class := a.Exit.Class
	r := t.policyOf(*a.Exit)
	uncounted := r.free && !a.mayHaveRun()
	out := Retry{Why: r.why, Free: uncounted}
	switch before, free := t.countClass(class); {
	case r.limit == 0:
		out.Free = false
		return out
	case r.limit > 0 && before > r.limit:
		return Retry{Why: fmt.Sprintf("it ended like this a second time (%s)", class)}
	case uncounted && free >= InfraAttempts:
		return Retry{Why: fmt.Sprintf("the infrastructure failed %d times", free), Free: true}
	case !uncounted && t.Counted() >= t.Spec.Attempts:
		return Retry{Why: fmt.Sprintf("all %d attempts are used up", t.Spec.Attempts)}
	}
	if r.memory {
		if t.Spec.MemoryBytes == 0 || a.MemoryMB == 0 {
			return Retry{Why: "it ran out of memory, and sbx did not set its limit: give --memory"}
		}
		out.MemoryMB = 2 * a.MemoryMB
	}
	out.Delay = Delay(t.Spec.Delay, len(t.Attempts), roll)
	if !t.DeadlineAt.IsZero() && t.ReadAt.Add(out.Delay).After(t.DeadlineAt) {
		return Retry{Why: "the deadline leaves no time for another attempt", Free: uncounted}
	}
	out.Again = true
	out.Failover = r.free && len(t.Spec.Fallback) > 0
	return out
}

// policyOf is what follows an exit.
func (t *Task) policyOf(e Exit) retryPolicy {
	r := retryPolicyOf(e.Class)
	if t.Spec.RetryOn != nil {
		r = t.requestedPolicy(e.Class, r)
	}
	if e.Class == sandbox.ClassKilledUnknown && e.Cause == sandbox.CauseOOMChild {
		r.why = "it was killed when a process of it ran out of memory"
	}
	if e.RefusedCreate() {
		r.why = "its sandbox was not created: the request was refused"
	}
	return r
}

// requestedPolicy is the policy where the operator has named the classes to retry.
func (t *Task) requestedPolicy(class sandbox.Class, r retryPolicy) retryPolicy {
	if !slices.Contains(t.Spec.RetryOn, class) {
		return retryPolicy{why: "a " + string(class) + " is not a reason to retry"}
	}
	if r.limit == 0 {
		r.limit = -1
		r.why = "--retry-on names " + string(class)
	}
	return r
}

// countClass counts the attempts that ended in a class, and those that were not counted,
// including the last.
func (t *Task) countClass(class sandbox.Class) (same, free int) {
	for _, a := range t.Attempts {
		if a.Exit == nil {
			continue
		}
		if a.Exit.Class == class {
			same++
		}
		if retryPolicyOf(a.Exit.Class).free && !a.neverEntered() && !a.mayHaveRun() {
			free++
		}
	}
	return same, free
}

// Delay is the pause after the n-th attempt (from 1): base, doubled with each attempt,
// times 0.5 to 1.5, at most MaxDelay.
func Delay(base time.Duration, n int, roll float64) time.Duration {
	d := float64(base) * math.Pow(2, float64(n-1)) * (0.5 + roll)
	return time.Duration(min(d, float64(MaxDelay)))
}

// Place is the provider of the next attempt.
func (t *Task) Place() string {
	places := append([]string{t.Spec.Provider}, t.Spec.Fallback...)
	n := 0
	for _, a := range t.Attempts {
		if a.Retry != nil && a.Retry.Failover {
			n++
		}
	}
	return places[min(n, len(places)-1)]
}

// nextMemoryMB is the memory limit of the next attempt; 0 = as the spec says.
func (t *Task) nextMemoryMB() int64 {
	if a := t.Last(); a != nil && a.Retry != nil && a.Retry.MemoryMB > 0 {
		return a.Retry.MemoryMB
	}
	if a := t.Last(); a != nil && a.MemoryMB > 0 && t.Spec.MemoryBytes > 0 {
		return a.MemoryMB // the limit of an earlier attempt stays
	}
	return t.Spec.MemoryBytes / sandbox.MiB
}

// Ruling describes the retries after a class of exits, for documentation.
type Ruling struct {
	Class sandbox.Class
	Again string // how often
	Why   string
}

// Rulings describes the retries without --retry-on, class by class.
func Rulings() []Ruling {
	var list []Ruling
	never := []sandbox.Class{
		sandbox.ClassAgentError, sandbox.ClassUsage, sandbox.ClassAuth, sandbox.ClassEnvironment, sandbox.ClassTimeout, sandbox.ClassKilledByUs,
		sandbox.ClassStopped,
	}
	for _, c := range append(RetryOn(), never...) {
		r, again := retryPolicyOf(c), "once"
		switch {
		case r.limit == 0:
			again = "never"
		case r.free:
			again = "while there are attempts; up to " + strconv.Itoa(InfraAttempts-1) + " times without using one where its program cannot have run"
		case r.limit < 0:
			again = "while there are attempts"
		}
		list = append(list, Ruling{c, again, r.why})
	}
	return list
}
