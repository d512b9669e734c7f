//go:build unix

package supervisor

import (
	"time"

	"sbx/internal/providers/local/wire"
)

// againAfter is how long a record that could not be written waits for the next try.
const againAfter = time.Second

// heard takes in what the stub says; true when the sandbox is over with that. The
// channel is that of putDown, nil before the program's end.
func (s *supervisor) heard(r wire.StubReport, open bool) (again <-chan time.Time, over bool) {
	s.note(r.Exited)
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
	return s.putDown(), false
}

// catchUp hears what the stub has said already, so that what comes after the end of
// the program is not taken for its reason.
func (s *supervisor) catchUp() {
	if !s.rec.Linger {
		return
	}
	select {
	case r, open := <-s.stub.reports:
		s.heard(r, open)
	default:
	}
}

// programEnded completes what is known of the program's end while its sandbox
// stays: its output is stored to the last byte and the counters are read before
// anything that lives on adds to them.
func (s *supervisor) programEnded() {
	s.drain()
	s.output.EndLines()
	s.count()
	at := s.now().UTC()
	e := s.facts(at)
	s.rec.Exit = &e
	s.rec.Note(at, "exited", describe(e)+"; the sandbox stays")
}

// putDown writes the record, which tells whoever follows that the program has
// ended. What it gives back ticks when it has to be tried again; nil = never.
func (s *supervisor) putDown() <-chan time.Time {
	if err := s.store.Write(s.rec); err != nil {
		s.complain("recording the program's end", err)
		return time.After(againAfter)
	}
	return nil
}
