package task

import (
	"slices"
	"time"

	"sbx/internal/sandbox"
)

// forced is an end that sbx was to bring about: since when, and when it was seen.
type forced struct {
	since, gone time.Time // gone is zero where it was not seen yet
}

// late says that an end has been owed for longer than it is waited for.
func (f forced) late(now time.Time) bool { return f.gone.IsZero() && now.Sub(f.since) > EndWait }

// took is how long it has taken, so far where it is not over.
func (f forced) took(now time.Time) float64 {
	end := f.gone
	if end.IsZero() {
		end = now
	}
	return max(end.Sub(f.since), 0).Seconds()
}

// stopped gives the ends of tasks that somebody stopped.
func (m measured) stopped() []forced {
	var ends []forced
	for _, t := range m.tasks {
		if t.StopAt.IsZero() {
			continue
		}
		f := forced{since: t.StopAt}
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

// expiries gives the ends of attempts that a limit ended, and that had a sandbox.
func (m measured) expiries() []forced {
	var ends []forced
	for _, t := range m.tasks {
		for _, a := range t.Attempts {
			if a.Expired != ReasonNone && a.Sandbox != "" {
				ends = append(ends, forced{since: a.EndedAt, gone: a.GoneAt})
			}
		}
	}
	return ends
}

// seen counts the ends that were seen; those that are not owed for long do not count.
func (m measured) seen(ends []forced) (pass, all int) {
	for _, f := range ends {
		switch {
		case !f.gone.IsZero():
			pass++
			all++
		case f.late(m.now):
			all++
		}
	}
	return pass, all
}

func (m measured) times(ends []forced) []float64 {
	list := make([]float64, len(ends))
	for i, f := range ends {
		list[i] = f.took(m.now)
	}
	return list
}

// stops are the figures of stop and cancellation.
func (m measured) stops() []Figure {
	stops, all := m.stopped(), append(m.stopped(), m.expiries()...)
	endings, owed := m.seen(all)
	done, asked := m.seen(stops)
	quiet, published := m.counts(func(t Task) bool { return !t.StopAt.IsZero() && t.Spec.Publishes() }, func(t Task) bool { return t.Publish.State != PublishDone })
	nobody, cancelled := m.counts(cancelledTask, func(t Task) bool { return t.StopAt.IsZero() || t.StopBy == "" })
	in := func(id, title string, t Target, why string) Figure {
		return Figure{ID: id, Group: groupStop, Title: title, Target: t, Why: why}
	}
	response := rank(in("S1-26", "from stop to gone (p99)", Target{"<", 5}, "one that goes on counts with its time so far"), UnitSeconds, m.times(stops), 99)
	const owing = "not seen within 30 s counts as failed"
	return []Figure{
		share(in("S1-25", "stops and limits that ended it", Target{">", 0.95}, owing), endings, owed),
		response,
		share(in("S1-33", "stops that ended it", Target{">", 0.95}, owing), done, asked),
		rank(in("S1-35", "from stop or limit to gone (p99)", Target{"<", 30}, "one that goes on counts with its time so far"), UnitSeconds, m.times(all), 99),
		same("S1-36", response),
		share(in("S1-37", "no push after a stop", Target{">=", 1}, "of stopped tasks that were to publish"), quiet, published),
		share(in("S1-38", "stopped, though nobody asked", Target{"<", 0.01}, "that somebody stopped the wrong task cannot be known"), nobody, cancelled),
		share(in("S1-52", "alert: stops that failed", Target{"<=", 0.10}, "over the target: investigate"), asked-done, asked),
	}
}

// cancelledTask says that a task or the program of one of its attempts was taken for
// stopped.
func cancelledTask(t Task) bool {
	return t.State == Stopped || t.Verdict == Stopped ||
		slices.ContainsFunc(t.Attempts, func(a Attempt) bool { return a.Exit != nil && a.Exit.Class == sandbox.ClassStopped })
}
