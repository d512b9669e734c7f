package vercel

import (
	"cmp"
	"time"

	"sbx/internal/sandbox"
	"sbx/internal/triage"
)

// late is how long a session may take to stop once its time is over. A stop that
// was asked for that close to it is taken for the service's own.
const late = 2 * time.Second

// started is when the session began, or at least was made.
func (w *wireSession) started() time.Time {
	return cmp.Or(w.StartedAt, w.CreatedAt, w.RequestedAt).time()
}

func (w *wireSession) ended() time.Time { return cmp.Or(w.StoppedAt, w.AbortedAt).time() }

// deadline is when the session ends by itself.
func (w *wireSession) deadline() time.Time {
	started, timeout := w.StartedAt.time(), w.Timeout.duration()
	if started.IsZero() || timeout <= 0 {
		return time.Time{}
	}
	return started.Add(timeout)
}

// timed gives how long the session ran and was allowed to; zero where somebody
// asked it to stop before its time, or where that is not known.
func (w *wireSession) timed() (ran, limit time.Duration) {
	ended, deadline, asked := w.ended(), w.deadline(), w.RequestedStopAt.time()
	if ended.IsZero() || deadline.IsZero() || (!asked.IsZero() && asked.Before(deadline.Add(-late))) {
		return 0, 0
	}
	return ended.Sub(w.StartedAt.time()), w.Timeout.duration()
}

// sessionExit is how a session that is over has ended; w is nil where only the
// name's status is known.
func sessionExit(status string, w *wireSession, at time.Time) *sandbox.Exit {
	f := triage.ExitFacts{Words: exitWords(), Provider: TypeName, Raw: status, Source: "API", At: at}
	if w != nil {
		f.Ran, f.Limit = w.timed()
	}
	e := triage.ClassifyExit(nil, f)
	if w != nil && w.RequestedStopAt > 0 {
		e.Evidence = append(e.Evidence, sandbox.Evidence{What: "stop requested", Value: w.RequestedStopAt.time().Format(time.RFC3339), Source: "API", At: at})
	}
	return &e
}
