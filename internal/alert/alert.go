// Package alert decides when a condition on the figures of a provider has held for long enough to
// notify people, and when it is over.
//
// The rules are rows of package check: a condition, how long it must hold, and how severe it is. The
// State of a rule is a document in the store, changed by compare-and-set, so that several processes and hosts notify once. Time in
// which nobody evaluated the rule counts for nothing: it neither fires nor forgets. The package
// sends nothing itself.
package alert

import (
	"fmt"
	"time"

	"sbx/internal/sandbox"
)

// Phase is where an alert stands.
type Phase string

// The closed list. Pending holds, but not for long enough yet.
const (
	Quiet   Phase = "quiet"
	Pending Phase = "pending"
	Firing  Phase = "firing"
)

// State is what is kept of one rule at one provider.
type State struct {
	Phase Phase     `json:"phase"`
	Since time.Time `json:"since"` // when it began to hold, later by what nobody saw
	Last  time.Time `json:"last"`  // of the last evaluation with a known verdict
	// GapNanoseconds is the time without an evaluation since it began to hold.
	GapNanoseconds time.Duration `json:"gap_ns"`
	// Send is the notification that is due; empty = none. Until SendUntil one process is sending,
	// and no other sends, so that a recovery never overtakes the alert.
	Send      Event     `json:"send"`
	SendUntil time.Time `json:"send_until"`
	// Left are the services that have not got it, where others have; empty = none has.
	Left     []string `json:"left,omitempty"`
	Evidence []string `json:"evidence"` // of the last evaluation
}

// Event is a change that people are notified of.
type Event string

// The closed list.
const (
	EventNone      Event = ""
	EventFired     Event = "fired"
	EventRecovered Event = "recovered"
)

// Step is the next state of an alert after one evaluation at now, by the store's clock. holdFor is
// how long the condition must hold, and every how often it is expected to be evaluated: a pause of
// more than twice that is a gap, which counts for nothing. An unknown verdict changes nothing.
// EventFired and EventRecovered come once for each change, in State.Send. A clock that was set
// back neither forgets what has held nor blocks the alert until the old time comes again.
func Step(s State, verdict sandbox.Verdict, now time.Time, holdFor, every time.Duration) State {
	if back := s.Last.Sub(now); back > 0 {
		s.Last = now
		for _, at := range []*time.Time{&s.Since, &s.SendUntil} {
			if !at.IsZero() {
				*at = at.Add(-back)
			}
		}
	}
	if verdict != sandbox.True && verdict != sandbox.False {
		return s
	}
	if s.Phase == "" {
		s.Phase = Quiet
	}
	if pause := now.Sub(s.Last); s.Phase == Pending && pause > 2*every {
		s.Since, s.GapNanoseconds = s.Since.Add(pause), s.GapNanoseconds+pause
	}
	s.Last = now
	switch {
	case verdict == sandbox.False && s.Phase == Firing:
		s.Phase, s.Since, s.GapNanoseconds, s.Send, s.Left = Quiet, time.Time{}, 0, EventRecovered, nil
	case verdict == sandbox.False:
		s.Phase, s.Since, s.GapNanoseconds = Quiet, time.Time{}, 0
	case s.Phase == Quiet:
		s.Phase, s.Since, s.GapNanoseconds = Pending, now, 0
		fallthrough
	case s.Phase == Pending:
		if now.Sub(s.Since) >= holdFor {
			s.Phase, s.Send, s.Left = Firing, EventFired, nil
		}
	}
	return s
}

// Describe says where the alert stands: "pending for 8m of 30m, data gap 12m".
func (s State) Describe(now time.Time, holdFor time.Duration) string {
	var text string
	switch s.Phase {
	case Pending:
		text = fmt.Sprintf("pending for %s of %s", sandbox.FormatElapsed(now.Sub(s.Since)), sandbox.FormatDuration(holdFor))
	case Firing:
		text = "firing for " + sandbox.FormatElapsed(now.Sub(s.Since))
	default:
		return "quiet"
	}
	if s.GapNanoseconds > 0 {
		text += ", data gap " + sandbox.FormatElapsed(s.GapNanoseconds)
	}
	return text
}
