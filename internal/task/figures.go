package task

import (
	"math"
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// Unit is what a figure's value counts.
type Unit string

// The units.
const (
	UnitShare    Unit = "share" // 0..1
	UnitSeconds  Unit = "seconds"
	UnitMessages Unit = "messages"
	UnitCount    Unit = "count"
)

// Figure is one measure of many tasks, with its target.
type Figure struct {
	ID      string // its name
	Group   string
	Title   string
	Value   *float64 // nil = there is nothing to measure
	Unit    Unit
	Target  Target
	Samples int    // how many samples the value was computed from
	Why     string // what the value covers, and what it cannot know; "" = the title says all
}

// Target is the bound of a figure. The zero value is no bound: the figure is compared with
// itself over time.
type Target struct {
	Sign  string // ">", ">=", "<", "<="
	Bound float64
}

// Verdict is true for a target that is met, false for one that is missed, and unknown
// without a sample or a target.
func (f Figure) Verdict() sandbox.Verdict {
	if f.Value == nil || f.Samples == 0 || f.Target.Sign == "" {
		return sandbox.Unknown
	}
	return sandbox.VerdictOf(f.Target.isMet(*f.Value))
}

func (t Target) isMet(v float64) bool {
	switch t.Sign {
	case ">":
		return v > t.Bound
	case ">=":
		return v >= t.Bound
	case "<":
		return v < t.Bound
	}
	return v <= t.Bound
}

// The groups of figures, in the order of the report.
const (
	groupSuccess    = "success and retries"
	groupStop       = "stop and cancellation"
	groupResume     = "health and resume"
	groupInactivity = "inactivity"
	groupTimeout    = "timeout"
)

// Figures measures tasks. A task that is not over counts in the figures about what has
// already happened to it. now is the store's clock.
func Figures(tasks []Task, now time.Time) []Figure {
	m := measuredTasks{tasks, now}
	return slices.Concat(m.successFigures(), m.stopFigures(), m.resumeFigures(), m.inactivityFigures(), m.timeoutFigures())
}

type measuredTasks struct {
	tasks []Task
	now   time.Time
}

// shareFigure is the figure pass/of; 0 <= pass <= of.
func shareFigure(f Figure, pass, of int) Figure {
	f.Unit, f.Samples = UnitShare, of
	if of > 0 {
		v := float64(pass) / float64(of)
		f.Value = &v
	}
	return f
}

// percentileFigure is a figure that is a percentile (0..100) by nearest rank, so that it is
// one of the samples.
func percentileFigure(f Figure, unit Unit, values []float64, percent int) Figure {
	f.Unit, f.Samples = unit, len(values)
	if len(values) > 0 {
		sorted := slices.Sorted(slices.Values(values))
		n := max((percent*len(sorted)+99)/100, 1)
		v := math.Round(sorted[n-1]*1e3) / 1e3
		f.Value = &v
	}
	return f
}

// countTasks counts the tasks for which of is true, and those among them for which yes is
// true.
func (m measuredTasks) countTasks(of, yes func(Task) bool) (pass, all int) {
	for _, t := range m.tasks {
		if !of(t) {
			continue
		}
		all++
		if yes(t) {
			pass++
		}
	}
	return pass, all
}

func (m measuredTasks) endedAttempts() []Attempt {
	var all []Attempt
	for _, t := range m.tasks {
		for _, a := range t.Attempts {
			if a.Exit != nil {
				all = append(all, a)
			}
		}
	}
	return all
}

// wasKilled reports whether a SIGKILL that sbx did not send ended the attempt's program.
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

// ranToEnd reports whether a task is over and was not stopped.
func ranToEnd(t Task) bool { return t.State.Final() && t.State != Stopped }

// wasRetried reports whether there was a second attempt. An attempt that found a kept
// sandbox gone is not counted.
func wasRetried(t Task) bool {
	n := len(t.Attempts)
	if t.Recreated && n > 0 && t.Attempts[0].Reused {
		n--
	}
	return n > 1
}

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
		shareFigure(in("completed_without_sigkill", "completed without a SIGKILL", baseline+"; stopped ones do not count"), clean, over),
		shareFigure(in("retries_completed", "retried tasks that completed", baseline+"; stopped ones do not count"), again, tried),
		percentileFigure(in("time_to_sigkill_p50", "time to SIGKILL (p50)", baseline), UnitSeconds, seconds, 50),
		percentileFigure(in("time_to_sigkill_p95", "time to SIGKILL (p95)", baseline), UnitSeconds, seconds, 95),
		percentileFigure(in("messages_before_sigkill_p50", "messages before it (p50)", baseline+"; of agents that report them"), UnitMessages, messages, 50),
	}
}

// resumeFigures are the figures of tasks that go on in kept sandboxes.
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
		shareFigure(in("kept_unanswered", "kept ones that did not answer", Target{}, "a figure to compare over time; claimed and expired ones count"), sick, all),
		shareFigure(in("expired_recreated", "expired sandboxes recreated", Target{">", 0.95}, ""), anew, gone),
		shareFigure(
			in("sessions_resumed", "sessions that were resumed", Target{">", 0.90}, "of sandboxes that answered: the command ended on its own"), on, answered,
		),
		shareFigure(in("ended_not_reused", "ended ones not used again", Target{">=", 1}, "each one starts a reinstall"), once, dropped),
	}
}

// reusedTwice reports whether a kept sandbox was used again after it was found to be gone.
func reusedTwice(t Task) bool {
	n := 0
	for _, a := range t.Attempts {
		if a.Reused {
			n++
		}
	}
	return n > 1
}
