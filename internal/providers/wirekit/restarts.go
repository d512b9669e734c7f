package wirekit

import (
	"fmt"
	"strconv"
	"time"

	"sbx/internal/sandbox"
)

// Restarts is what an API reports of a program that it starts again when it ends.
type Restarts struct {
	Program string        // "its main program", "init container setup"
	Count   int           // -1 = not reported
	Waits   string        // why it does not run now, as "CrashLoopBackOff"; "" = it runs
	Last    *sandbox.Exit // how it ended last; nil = not reported
	LastAt  time.Time
	Source  string
}

const (
	// recentEnd is how long the last end of a program that runs again is a trouble of now.
	recentEnd = time.Hour
	// manyRestarts are no accident.
	manyRestarts = 3
)

// Trouble is the trouble that restarts show at a time; false = they show none.
func (r Restarts) Trouble(now time.Time) (sandbox.Trouble, bool) {
	recent := !r.LastAt.IsZero() && now.Sub(r.LastAt) < recentEnd
	if r.Waits == "" && (r.Count <= 0 || !recent) {
		return sandbox.Trouble{}, false
	}
	t := sandbox.Trouble{ID: "restarts", Cause: sandbox.CauseRestarts, Confidence: sandbox.Hint}
	if r.Count >= manyRestarts || r.Waits != "" {
		t.Confidence = sandbox.Probable
	}
	ended := "ended"
	if e := r.Last; e != nil {
		ended = "ended with " + e.Raw
		switch e.Cause {
		case sandbox.CauseOOM, sandbox.CauseOOMChild:
			ended, t.Cause, t.Confidence = "was killed: out of memory (OOM)", e.Cause, sandbox.Probable
		case sandbox.CauseNone, sandbox.CauseUnknown:
		default:
			ended += ", " + e.Cause.Label()
		}
	}
	t.Say = r.Program + " " + ended
	if r.Count > 0 {
		t.Say += fmt.Sprintf(", and was started again (restarts: %d)", r.Count)
	}
	if r.Waits != "" {
		t.Say += "; it waits: " + r.Waits
	}
	if r.Count >= 0 {
		t.Evidence = append(t.Evidence, sandbox.Evidence{What: "restarts", Value: strconv.Itoa(r.Count), Source: r.Source, At: r.LastAt})
	}
	if !r.LastAt.IsZero() {
		t.Evidence = append(t.Evidence, sandbox.Evidence{What: "last end", Value: r.LastAt.Format(time.RFC3339), Source: r.Source, At: r.LastAt})
	}
	if r.Last != nil {
		t.Evidence = append(t.Evidence, r.Last.Evidence...)
	}
	return t, true
}
