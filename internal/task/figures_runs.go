package task

import (
	"slices"

	"sbx/internal/sandbox"
)

// wasKilled says that a SIGKILL nobody here has sent ended the attempt's program.
func (a Attempt) wasKilled() bool {
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

// ranToEnd says that a task is over, and that nobody stopped it.
func ranToEnd(t Task) bool { return t.State.Final() && t.State != Stopped }

// wasRetried says that there was a second attempt; the one that found a kept sandbox
// gone is no first.
func wasRetried(t Task) bool {
	n := len(t.Attempts)
	if t.Recreated && n > 0 && t.Attempts[0].Reused {
		n--
	}
	return n > 1
}

// successFigures are the figures of source 000.
func (m measuredTasks) successFigures() []Figure {
	clean, over := m.countTasks(ranToEnd, func(t Task) bool {
		return t.State == Completed && !slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Exit != nil && a.wasKilled() })
	})
	again, tried := m.countTasks(func(t Task) bool { return ranToEnd(t) && wasRetried(t) }, func(t Task) bool { return t.State == Completed })
	var seconds, messages []float64
	for _, a := range m.endedAttempts() {
		if !a.wasKilled() {
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
		shareFigure(in("S0-21", "completed without a SIGKILL", baseline+"; stopped ones do not count"), clean, over),
		shareFigure(in("S0-22", "retried tasks that completed", baseline+"; stopped ones do not count"), again, tried),
		percentileFigure(in("S0-23 p50", "time to SIGKILL (p50)", baseline), UnitSeconds, seconds, 50),
		percentileFigure(in("S0-23 p95", "time to SIGKILL (p95)", baseline), UnitSeconds, seconds, 95),
		percentileFigure(in("S0-24", "messages before it (p50)", baseline+"; of agents that tell them"), UnitMessages, messages, 50),
	}
}

// resumeFigures are the figures of going on in kept sandboxes.
func (m measuredTasks) resumeFigures() []Figure {
	probed := func(t Task) bool { return t.Spec.Sandbox.ID != "" && (t.Resumed || t.Recreated) && !t.Spec.NoProbe }
	sick, all := m.countTasks(probed, func(t Task) bool { return t.Recreated })
	anew, gone := m.countTasks(func(t Task) bool { return t.Recreated && ranToEnd(t) }, func(t Task) bool {
		return slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return !a.Reused && !a.StartedAt.IsZero() })
	})
	on, answered := m.countTasks(func(t Task) bool { return t.Resumed && ranToEnd(t) }, func(t Task) bool {
		return slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Reused && a.Exit != nil && !retryPolicyOf(a.Exit.Class).free })
	})
	once, dropped := m.countTasks(func(t Task) bool { return t.Recreated }, func(t Task) bool { return !reusedTwice(t) })
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupResume, Title: title, Target: t, Why: why}
	}
	return []Figure{
		shareFigure(in("S1-27", "kept ones that did not answer", Target{}, "a figure to compare over time; one that was claimed or had expired counts"), sick, all),
		shareFigure(in("S1-39", "gone ones that were made anew", Target{">", 0.95}, ""), anew, gone),
		shareFigure(in("S1-40", "sessions that were resumed", Target{">", 0.90}, "of sandboxes that answered: the command ran to an end of its own"), on, answered),
		shareFigure(in("S1-41", "gone ones not used again", Target{">=", 1}, "a loop of reinstalling begins with one"), once, dropped),
	}
}

// reusedTwice says that a kept sandbox was used once more after it was found to be gone.
func reusedTwice(t Task) bool {
	n := 0
	for _, a := range t.Attempts {
		if a.Reused {
			n++
		}
	}
	return n > 1
}
