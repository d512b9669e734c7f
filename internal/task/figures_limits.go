package task

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// inactivityFigures are the figures of the inactivity limit.
func (m measuredTasks) inactivityFigures() []Figure {
	ran, silent, judged, wrong := 0, 0, 0, 0
	var detection []float64
	for _, a := range m.endedAttempts() {
		if a.StartedAt.IsZero() {
			continue
		}
		ran++
		if a.Expired == ReasonInactivity {
			silent++
			judged++
			if a.Extended {
				wrong++
			} else {
				detection = append(detection, a.EndedAt.Sub(lastActivity(a)).Seconds())
			}
		} else if a.Extended && a.Exit.Class == sandbox.ClassOK {
			judged++
		}
	}
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupInactivity, Title: title, Target: t, Why: why}
	}
	rate := shareFigure(in("S1-28", "ended for inactivity", Target{"<", 0.05}, "of attempts whose program began"), silent, ran)
	return []Figure{
		rate,
		repeatFigure("S1-42", rate),
		shareFigure(in("S1-43", "ended, though it had worked", Target{"<", 0.02},
			"of those that were silent too long; whether a still one would have gone on cannot be known"), wrong, judged),
		percentileFigure(in("S1-44", "from silence to its end (p99)", Target{"<", 61},
			"the limit's 60 s, and one to see it; a longer --inactivity misses it"), UnitSeconds, detection, 99),
		shareFigure(in("S1-53", "alert: ended for inactivity", Target{"<=", 0.20}, "over the target: look at the agents"), silent, ran),
	}
}

// lastActivity is when an attempt was last heard of.
func lastActivity(a Attempt) time.Time {
	if a.OutputAt.After(a.StartedAt) {
		return a.OutputAt
	}
	return a.StartedAt
}

// timeoutFigures are the figures of the other limits, and of what must never meet.
func (m measuredTasks) timeoutFigures() []Figure {
	done, owed := m.countSeen(m.limitEnds())
	quiet, published := m.countTasks(func(t Task) bool { return t.hasTimedOut() && t.Spec.Publishes() }, func(t Task) bool { return t.Publish.State != PublishDone })
	incidents := float64(len(Incidents(m.tasks)))
	races := Figure{
		ID: "S1-47", Group: groupTimeout, Title: "incidents of races", Target: Target{"<=", 0}, Unit: UnitCount, Samples: len(m.tasks),
		Why: "published after its end, over with a sandbox left, or two sandboxes at once",
	}
	if races.Samples > 0 {
		races.Value = &incidents
	}
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupTimeout, Title: title, Target: t, Why: why}
	}
	return []Figure{
		shareFigure(in("S1-45", "limits that ended it", Target{">", 0.95}, "not seen within 30 s counts as failed"), done, owed),
		shareFigure(in("S1-46", "no push after a limit", Target{">=", 1}, "of timed out tasks that were to publish"), quiet, published),
		races,
	}
}

func (t *Task) hasTimedOut() bool { return t.State == TimedOut || t.Verdict == TimedOut }

// Incidents gives the tasks of which two things are known that must never be true
// together.
func Incidents(tasks []Task) []Task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t Task) bool { return !t.isContradictory() })
}

func (t *Task) isContradictory() bool {
	ended := !t.StopAt.IsZero() || t.hasTimedOut()
	if ended && t.Publish.State == PublishDone || t.State.Final() && !t.AllGone() {
		return true
	}
	for i := 1; i < len(t.Attempts); i++ {
		before, next := t.Attempts[i-1], t.Attempts[i]
		if before.Sandbox != "" && (before.GoneAt.IsZero() || next.IntentAt.Before(before.GoneAt)) {
			return true
		}
	}
	return false
}

// Blame is how often attempts failed in one way.
type Blame struct {
	Class    sandbox.Class
	Cause    sandbox.Cause
	Attempts int
	Latest   string // the task of the latest one
	at       time.Time
}

// Causes counts how attempts failed, the most frequent way first. Those that somebody
// stopped did not fail.
func Causes(tasks []Task) []Blame {
	var list []Blame
	for _, t := range tasks {
		for _, a := range t.Attempts {
			if a.Exit == nil || a.Exit.Class == sandbox.ClassOK || a.Exit.Class == sandbox.ClassStopped || !t.StopAt.IsZero() && !a.EndedAt.Before(t.StopAt) {
				continue
			}
			i := slices.IndexFunc(list, func(b Blame) bool { return b.Class == a.Exit.Class && b.Cause == a.Exit.Cause })
			if i < 0 {
				list, i = append(list, Blame{Class: a.Exit.Class, Cause: a.Exit.Cause}), len(list)
			}
			list[i].Attempts++
			if !a.EndedAt.Before(list[i].at) {
				list[i].Latest, list[i].at = t.ID, a.EndedAt
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Blame) int { return b.Attempts - a.Attempts })
	return list
}
