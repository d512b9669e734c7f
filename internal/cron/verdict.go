package cron

import (
	"fmt"
	"time"

	"sbx/internal/sandbox"
)

// Run is one recorded run of a layer, as a journal tells it.
type Run struct {
	Layer     Layer // LayerOf its command line
	StartedAt time.Time
	EndedAt   time.Time // zero = it runs, or died
	ExitCode  int
}

// found is the exit code of a check that found something (the table of fault).
const found = 10

// succeeded says that a run did what its layer is for. Reconcile may only look
// (--check-only): then what it found is an answer as well, and nothing but a look
// ends with that code.
func (r Run) succeeded() bool {
	return !r.EndedAt.IsZero() && (r.ExitCode == 0 || r.Layer == Reconcile && r.ExitCode == found)
}

// Status is how a layer stands.
type Status struct {
	Layer       Layer
	Every       time.Duration
	LastRun     time.Time // when the newest run began; zero = none is recorded
	LastSuccess time.Time // when the newest good one ended; zero = none is recorded
	LastExit    *int      // of the newest run that ended
	Verdict     sandbox.Verdict
	Message     string
}

// skewed is how far a record may lie in the future.
const skewed = time.Minute

// Judge says of each layer whether it runs: true with a success within two of its
// periods, false without one, unknown where nothing is recorded of it.
func Judge(layers []Layer, runs []Run, now time.Time) []Status {
	list := make([]Status, 0, len(layers))
	for _, l := range layers {
		s := Status{Layer: l, Every: Every(l)}
		for _, r := range runs {
			if r.Layer == l {
				s.note(r)
			}
		}
		s.judge(now)
		list = append(list, s)
	}
	return list
}

// note takes a run into account; runs come in any order.
func (s *Status) note(r Run) {
	if r.StartedAt.After(s.LastRun) {
		s.LastRun = r.StartedAt
		s.LastExit = nil
		if !r.EndedAt.IsZero() {
			s.LastExit = &r.ExitCode
		}
	}
	if r.succeeded() && r.EndedAt.After(s.LastSuccess) {
		s.LastSuccess = r.EndedAt
	}
}

func (s *Status) judge(now time.Time) {
	since := now.Sub(s.LastSuccess)
	switch {
	case s.LastRun.IsZero():
		s.Verdict, s.Message = sandbox.Unknown, "no run is recorded"
	case s.LastSuccess.IsZero():
		s.Verdict, s.Message = sandbox.False, "it has never succeeded; it last ran "+ago(now.Sub(s.LastRun))+s.how()
	case since < -skewed:
		s.Verdict, s.Message = sandbox.Unknown, "the last success is recorded in the future: is the clock of this machine right?"
	case since > 2*s.Every:
		s.Verdict, s.Message = sandbox.False, fmt.Sprintf("overdue: it last succeeded %s, and should every %s", ago(since), period(s.Every))
		if s.LastRun.After(s.LastSuccess) {
			s.Message += "; it last ran " + ago(now.Sub(s.LastRun)) + s.how()
		}
	default:
		s.Verdict, s.Message = sandbox.True, "it last succeeded "+ago(since)
	}
}

// how is how the newest run ended.
func (s *Status) how() string {
	if s.LastExit == nil {
		return " and has not ended"
	}
	return fmt.Sprintf(" and ended with exit %d", *s.LastExit)
}

func ago(d time.Duration) string { return sandbox.FormatDuration(max(0, d)) + " ago" }
