package task

import (
	"slices"

	"sbx/internal/sandbox"
)

// killed says that a SIGKILL nobody here has sent ended the attempt's program.
func (a Attempt) killed() bool {
	switch a.Exit.Class {
	case sandbox.ClassOOM, sandbox.ClassKilledUnknown:
		return true
	case sandbox.ClassKilledByUs, sandbox.ClassStopped, sandbox.ClassTimeout:
		return false
	case sandbox.ClassOK, sandbox.ClassAgentError, sandbox.ClassUsage, sandbox.ClassAuth, sandbox.ClassEnvironment, sandbox.ClassLauncher,
		sandbox.ClassCrash, sandbox.ClassTransport, sandbox.ClassGone, sandbox.ClassInfra, sandbox.ClassUnknown:
	}
	return a.Exit.Signal == "SIGKILL"
}

// toItsEnd says that a task is over, and that nobody stopped it.
func toItsEnd(t Task) bool { return t.State.Over() && t.State != Stopped }

// retried says that there was a second attempt; the one that found a kept sandbox
// gone is no first.
func retried(t Task) bool {
	n := len(t.Attempts)
	if t.Recreated && n > 0 && t.Attempts[0].Reused {
		n--
	}
	return n > 1
}

// success are the figures of source 000.
func (m measured) success() []Figure {
	clean, over := m.counts(toItsEnd, func(t Task) bool {
		return t.State == Completed && !slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Exit != nil && a.killed() })
	})
	again, tried := m.counts(func(t Task) bool { return toItsEnd(t) && retried(t) }, func(t Task) bool { return t.State == Completed })
	var seconds, messages []float64
	for _, a := range m.attempts() {
		if !a.killed() {
			continue
		}
		if !a.StartedAt.IsZero() {
			seconds = append(seconds, a.EndedAt.Sub(a.StartedAt).Seconds())
		}
		if a.Messages != nil {
			messages = append(messages, float64(*a.Messages))
		}
	}
	const baseline = "a figure to compare over time: no target is set"
	in := func(id, title, why string) Figure { return Figure{ID: id, Group: groupSuccess, Title: title, Why: why} }
	return []Figure{
		share(in("S0-21", "completed without a SIGKILL", baseline+"; stopped ones do not count"), clean, over),
		share(in("S0-22", "retried tasks that completed", baseline+"; stopped ones do not count"), again, tried),
		rank(in("S0-23 p50", "time to SIGKILL (p50)", baseline), UnitSeconds, seconds, 50),
		rank(in("S0-23 p95", "time to SIGKILL (p95)", baseline), UnitSeconds, seconds, 95),
		rank(in("S0-24", "messages before it (p50)", baseline+"; of agents that tell them"), UnitMessages, messages, 50),
	}
}

// resumes are the figures of going on in kept sandboxes.
func (m measured) resumes() []Figure {
	probed := func(t Task) bool { return t.Spec.Sandbox.ID != "" && (t.Resumed || t.Recreated) && !t.Spec.NoProbe }
	sick, all := m.counts(probed, func(t Task) bool { return t.Recreated })
	anew, gone := m.counts(func(t Task) bool { return t.Recreated && toItsEnd(t) }, func(t Task) bool {
		return slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return !a.Reused && !a.StartedAt.IsZero() })
	})
	on, answered := m.counts(func(t Task) bool { return t.Resumed && toItsEnd(t) }, func(t Task) bool {
		return slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Reused && a.Exit != nil && !rule(a.Exit.Class).free })
	})
	once, dropped := m.counts(func(t Task) bool { return t.Recreated }, func(t Task) bool { return !reused(t) })
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupResume, Title: title, Target: t, Why: why}
	}
	return []Figure{
		share(in("S1-27", "kept ones that did not answer", Target{}, "a figure to compare over time; one that was claimed or had expired counts"), sick, all),
		share(in("S1-39", "gone ones that were made anew", Target{">", 0.95}, ""), anew, gone),
		share(in("S1-40", "sessions that were resumed", Target{">", 0.90}, "of sandboxes that answered: the command ran to an end of its own"), on, answered),
		share(in("S1-41", "gone ones not used again", Target{">=", 1}, "a loop of reinstalling begins with one"), once, dropped),
	}
}

// reused says that a kept sandbox was used once more after it was found to be gone.
func reused(t Task) bool {
	n := 0
	for _, a := range t.Attempts {
		if a.Reused {
			n++
		}
	}
	return n > 1
}
