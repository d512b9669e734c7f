package task

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// forcedEnd is the end of a sandbox that sbx had to bring about.
type forcedEnd struct {
	since, gone time.Time // gone is zero until it is seen
}

func (m measuredTasks) stopEnds() []forcedEnd {
	var ends []forcedEnd
	for _, t := range m.tasks {
		if t.StopAt.IsZero() {
			continue
		}
		f := forcedEnd{since: t.StopAt}
		if t.AllGone() {
			f.gone = t.StopAt
			for _, a := range t.Attempts {
				if a.GoneAt.After(f.gone) {
					f.gone = a.GoneAt
				}
			}
		}
		ends = append(ends, f)
	}
	return ends
}

// limitEnds are the ends of attempts with a sandbox that a limit ended.
func (m measuredTasks) limitEnds() []forcedEnd {
	var ends []forcedEnd
	for _, t := range m.tasks {
		for _, a := range t.Attempts {
			if a.Expired != ReasonNone && a.Sandbox != "" {
				ends = append(ends, forcedEnd{since: a.EndedAt, gone: a.GoneAt})
			}
		}
	}
	return ends
}

// countSeen counts the ends that were seen, of those that were seen or are late.
func (m measuredTasks) countSeen(ends []forcedEnd) (pass, all int) {
	for _, f := range ends {
		switch {
		case !f.gone.IsZero():
			pass++
			all++
		case m.now.Sub(f.since) > EndWait:
			all++
		}
	}
	return pass, all
}

func (m measuredTasks) endTimes(ends []forcedEnd) []float64 {
	list := make([]float64, len(ends))
	for i, f := range ends {
		end := f.gone
		if end.IsZero() {
			end = m.now
		}
		list[i] = max(end.Sub(f.since), 0).Seconds()
	}
	return list
}

func (m measuredTasks) stopFigures() []Figure {
	stops, all := m.stopEnds(), append(m.stopEnds(), m.limitEnds()...)
	endings, owed := m.countSeen(all)
	done, asked := m.countSeen(stops)
	quiet, published := m.countTasks(
		func(t Task) bool { return !t.StopAt.IsZero() && t.Spec.Publishes() }, func(t Task) bool { return t.Publish.State != PublishDone },
	)
	nobody, cancelled := m.countTasks(wasCancelled, func(t Task) bool { return t.StopAt.IsZero() || t.StopBy == "" })
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupStop, Title: title, Target: t, Why: why}
	}
	const owing = "not verified within 30 s counts as failed"
	return []Figure{
		shareFigure(in("ends_verified", "stops and limits that ended it", Target{">", 0.95}, owing), endings, owed),
		percentileFigure(
			in("stop_time_p99", "stop to verified end (p99)", Target{"<", 5}, "one that continues counts with its time so far"), UnitSeconds,
			m.endTimes(stops), 99,
		),
		shareFigure(in("stops_verified", "stops that ended it", Target{">", 0.95}, owing), done, asked),
		percentileFigure(
			in("end_time_p99", "stop/limit to verified end (p99)", Target{"<", 30}, "one that continues counts with its time so far"), UnitSeconds,
			m.endTimes(all), 99,
		),
		shareFigure(in("stopped_not_published", "no push after a stop", Target{">=", 1}, "of stopped tasks with a publish target"), quiet, published),
		shareFigure(in("stopped_unasked", "stopped without a request", Target{"<", 0.01}, "a stop of the wrong task cannot be detected"), nobody, cancelled),
		shareFigure(in("stop_failures_high", "alert: stops that failed", Target{"<=", 0.10}, "over the target: investigate"), asked-done, asked),
	}
}

// wasCancelled reports whether a task, or the program of one of its attempts, was taken for
// stopped.
func wasCancelled(t Task) bool {
	return t.State == Stopped || t.Verdict == Stopped ||
		slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Exit != nil && a.Exit.Class == sandbox.ClassStopped })
}

func (m measuredTasks) inactivityFigures() []Figure {
	ran, silent, judged, wrong := 0, 0, 0, 0
	var detection []float64
	for _, a := range m.endedAttempts() {
		if a.StartedAt.IsZero() {
			continue
		}
		ran++
		lastSeen := a.StartedAt
		if a.OutputAt.After(lastSeen) {
			lastSeen = a.OutputAt
		}
		if a.Expired == ReasonInactivity {
			silent++
			judged++
			if a.Extended {
				wrong++
			} else {
				detection = append(detection, a.EndedAt.Sub(lastSeen).Seconds())
			}
		} else if a.Extended && a.Exit.Class == sandbox.ClassOK {
			judged++
		}
	}
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupInactivity, Title: title, Target: t, Why: why}
	}
	return []Figure{
		shareFigure(in("ended_inactive", "ended for inactivity", Target{"<", 0.05}, "of attempts whose program began"), silent, ran),
		shareFigure(in("killed_active", "killed although active", Target{"<", 0.02},
			"of those that were silent too long; whether an idle one would have continued is unknown"), wrong, judged),
		percentileFigure(in("silence_to_end_p99", "from silence to its end (p99)", Target{"<", 61},
			"the limit's 60 s, and one to detect it; a longer --inactivity misses it"), UnitSeconds, detection, 99),
		shareFigure(in("inactivity_high", "alert: ended for inactivity", Target{"<=", 0.20}, "over the target: check the agents"), silent, ran),
	}
}

// timeoutFigures are the figures of the other limits, and of contradictions between
// records.
func (m measuredTasks) timeoutFigures() []Figure {
	done, owed := m.countSeen(m.limitEnds())
	quiet, published := m.countTasks(
		func(t Task) bool { return t.hasTimedOut() && t.Spec.Publishes() }, func(t Task) bool { return t.Publish.State != PublishDone },
	)
	incidents := float64(len(Incidents(m.tasks)))
	races := Figure{
		ID: "race_incidents", Group: groupTimeout, Title: "incidents of races", Target: Target{"<=", 0}, Unit: UnitCount, Samples: len(m.tasks),
		Why: "published after its end, ended with a sandbox left, or two sandboxes at once",
	}
	if races.Samples > 0 {
		races.Value = &incidents
	}
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupTimeout, Title: title, Target: t, Why: why}
	}
	return []Figure{
		shareFigure(in("limits_verified", "limits that ended it", Target{">", 0.95}, "not verified within 30 s counts as failed"), done, owed),
		shareFigure(in("limited_not_published", "no push after a limit", Target{">=", 1}, "of timed out tasks with a publish target"), quiet, published),
		races,
	}
}

func (t *Task) hasTimedOut() bool { return t.State == TimedOut || t.Verdict == TimedOut }

// Incidents are the tasks whose records contradict each other.
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

// FailureCount counts the attempts that failed in one way.
type FailureCount struct {
	Class    sandbox.Class
	Cause    sandbox.Cause
	Attempts int
	Latest   string // the task of the latest one
	at       time.Time
}

// CountFailures counts how attempts failed, the most frequent way first. An attempt that was
// stopped did not fail.
func CountFailures(tasks []Task) []FailureCount {
	var list []FailureCount
	for _, t := range tasks {
		for _, a := range t.Attempts {
			if a.Exit == nil || a.Exit.Class == sandbox.ClassOK || a.Exit.Class == sandbox.ClassStopped || !t.StopAt.IsZero() && !a.EndedAt.Before(t.StopAt) {
				continue
			}
			i := slices.IndexFunc(list, func(b FailureCount) bool { return b.Class == a.Exit.Class && b.Cause == a.Exit.Cause })
			if i < 0 {
				list, i = append(list, FailureCount{Class: a.Exit.Class, Cause: a.Exit.Cause}), len(list)
			}
			list[i].Attempts++
			if !a.EndedAt.Before(list[i].at) {
				list[i].Latest, list[i].at = t.ID, a.EndedAt
			}
		}
	}
	slices.SortStableFunc(list, func(a, b FailureCount) int { return b.Attempts - a.Attempts })
	return list
}
