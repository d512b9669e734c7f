//go:build unix

package supervisor

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
)

// watchdogEvery is the interval of the watchdog. At 100 ms a 64 MiB limit is enforced at 72 to
// 101 MiB; a quarter of that costs about one percent of a core and reduces the overshoot of a
// fast program to a quarter.
const watchdogEvery = 25 * time.Millisecond

// tidyEvery is how many watchdog looks are between two garbage collections (5 s). By itself
// the runtime collects after a whole MiB, a quarter of a supervisor's memory budget.
const tidyEvery = 200

// ttlGrace is the grace of a program whose time is over.
const ttlGrace = 2 * time.Second

// ignoringLooks is how many consecutive looks must find that every process ignores TERM: one
// look may miss a process that is starting.
const ignoringLooks = 5

// watchSignals receives TERM, the request to read the stop request; the signals of a closing
// terminal or a key are not for a detached process.
func watchSignals() <-chan os.Signal {
	// They are caught, not ignored: the program would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	return c
}

// watchSandbox returns when the program has ended or must end; for a lingering sandbox, when
// the sandbox must end or its stub is gone.
func (s *supervisor) watchSandbox(signals <-chan os.Signal) {
	var ttl, look, again <-chan time.Time
	looks := 0
	if seconds := s.rec.Limits.TTLSeconds; seconds > 0 {
		ttl = time.After(time.Duration(seconds * float64(time.Second)))
	}
	if s.softLimit {
		ticker := time.NewTicker(watchdogEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case report, open := <-s.stub.reports:
			var over bool
			if again, over = s.handleReport(report, open); over {
				return
			}
		case <-again:
			again = s.writeProgramEnd()
		case <-signals:
			s.catchUp()
			s.stop = s.readStop()
			s.terminateTree(time.Duration(s.stop.GraceSeconds*float64(time.Second)), s.stop.Patient)
			return
		case <-ttl:
			s.catchUp()
			s.timedOut = true
			s.terminateTree(ttlGrace, false)
			return
		case <-look:
			if s.overLimit() {
				return
			}
			if looks++; looks%tidyEvery == 0 {
				runtime.GC()
			}
		}
	}
}

// readStop reads who requested the stop. A TERM without a request came from outside sbx and
// counts as a stop as well: the supervisor never survives a TERM.
func (s *supervisor) readStop() *record.Stop {
	stop, err := s.store.Stop(s.rec.ID)
	if err != nil || stop == nil {
		return &record.Stop{By: "SIGTERM to the supervisor", At: s.now().UTC()}
	}
	return stop
}

// rewriteAfter is the time between two attempts to write a record.
const rewriteAfter = time.Second

// handleReport processes a report of the stub; over says that the sandbox ends with it. The
// channel is that of writeProgramEnd, nil before the program's end.
func (s *supervisor) handleReport(r wire.StubReport, open bool) (again <-chan time.Time, over bool) {
	s.noteExit(r.Exited)
	switch {
	case !open:
		s.stubLost = s.rec.ProgramEnded()
		return nil, true
	case r.Exited == nil:
		return nil, false
	case !s.rec.Linger:
		return nil, true
	}
	s.programEnded()
	return s.writeProgramEnd(), false
}

// catchUp processes a report that is already waiting, so that a later event does not count as
// the reason of the program's end.
func (s *supervisor) catchUp() {
	if !s.rec.Linger {
		return
	}
	select {
	case r, open := <-s.stub.reports:
		s.handleReport(r, open)
	default:
	}
}

// programEnded records the program's end while its sandbox stays: its output is stored
// completely and the counters are read before remaining processes add to them.
func (s *supervisor) programEnded() {
	s.drainOutput()
	s.output.EndLines()
	s.readCounters()
	at := s.now().UTC()
	e := s.exitFacts(at)
	s.rec.Exit = &e
	s.rec.Note(at, "exited", describeExit(e)+"; the sandbox stays")
}

// writeProgramEnd writes the record, by which followers learn that the program has ended. The
// returned channel ticks when the write has to be repeated; nil = never.
func (s *supervisor) writeProgramEnd() <-chan time.Time {
	if err := s.store.Write(s.rec); err != nil {
		s.logError("recording the program's end", err)
		return time.After(rewriteAfter)
	}
	return nil
}
