package task

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// forcedEnd is an end that sbx was to bring about: since when, and when it was seen.
type forcedEnd struct {
	since, gone time.Time // gone is zero where it was not seen yet
}

// isLate says that an end has been owed for longer than it is waited for.
func (f forcedEnd) isLate(now time.Time) bool { return f.gone.IsZero() && now.Sub(f.since) > EndWait }

// secondsTaken is how long it has taken, so far where it is not over.
func (f forcedEnd) secondsTaken(now time.Time) float64 {
	end := f.gone
	if end.IsZero() {
		end = now
	}
	return max(end.Sub(f.since), 0).Seconds()
}

// stopEnds gives the ends of tasks that somebody stopped.
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

// limitEnds gives the ends of attempts that a limit ended, and that had a sandbox.
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

// countSeen counts the ends that were seen; those that are not owed for long do not count.
func (m measuredTasks) countSeen(ends []forcedEnd) (pass, all int) {
	for _, f := range ends {
		switch {
		case !f.gone.IsZero():
			pass++
			all++
		case f.isLate(m.now):
			all++
		}
	}
	return pass, all
}

func (m measuredTasks) endTimes(ends []forcedEnd) []float64 {
	list := make([]float64, len(ends))
	for i, f := range ends {
		list[i] = f.secondsTaken(m.now)
	}
	return list
}

// stopFigures are the figures of stop and cancellation.
func (m measuredTasks) stopFigures() []Figure {
	stops, all := m.stopEnds(), append(m.stopEnds(), m.limitEnds()...)
	endings, owed := m.countSeen(all)
	done, asked := m.countSeen(stops)
	quiet, published := m.countTasks(func(t Task) bool { return !t.StopAt.IsZero() && t.Spec.Publishes() }, func(t Task) bool { return t.Publish.State != PublishDone })
	nobody, cancelled := m.countTasks(wasCancelled, func(t Task) bool { return t.StopAt.IsZero() || t.StopBy == "" })
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupStop, Title: title, Target: t, Why: why}
	}
	response := percentileFigure(in("S1-26", "from stop to gone (p99)", Target{"<", 5}, "one that goes on counts with its time so far"), UnitSeconds, m.endTimes(stops), 99)
	const owing = "not seen within 30 s counts as failed"
	return []Figure{
		shareFigure(in("S1-25", "stops and limits that ended it", Target{">", 0.95}, owing), endings, owed),
		response,
		shareFigure(in("S1-33", "stops that ended it", Target{">", 0.95}, owing), done, asked),
		percentileFigure(in("S1-35", "from stop or limit to gone (p99)", Target{"<", 30}, "one that goes on counts with its time so far"), UnitSeconds, m.endTimes(all), 99),
		repeatFigure("S1-36", response),
		shareFigure(in("S1-37", "no push after a stop", Target{">=", 1}, "of stopped tasks that were to publish"), quiet, published),
		shareFigure(in("S1-38", "stopped, though nobody asked", Target{"<", 0.01}, "that somebody stopped the wrong task cannot be known"), nobody, cancelled),
		shareFigure(in("S1-52", "alert: stops that failed", Target{"<=", 0.10}, "over the target: investigate"), asked-done, asked),
	}
}

// wasCancelled says that a task or the program of one of its attempts was taken for
// stopped.
func wasCancelled(t Task) bool {
	return t.State == Stopped || t.Verdict == Stopped ||
		slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Exit != nil && a.Exit.Class == sandbox.ClassStopped })
}
