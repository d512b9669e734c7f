//go:build unix

package supervisor

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"sbx/internal/providers/local/record"
)

// watchdogEvery is how often the watchdog looks. At 100 ms a 64 MiB limit is
// caught between 72 and 101 MiB; four times that pace costs about one
// percent of a core and leaves a fast program a quarter of the room.
const watchdogEvery = 25 * time.Millisecond

// tidyEvery is how many looks lie between two collections of what they leave,
// 5 s. By itself the runtime collects once a whole MiB has gathered, a quarter of
// what a supervisor may hold (DESIGN section 11).
const tidyEvery = 200

// ttlGrace is what a program that can hear TERM gets when its time is over.
const ttlGrace = 2 * time.Second

// ignoringLooks is how many looks in a row must find that every process ignores TERM: one
// look may miss a process that starts at that moment.
const ignoringLooks = 5

// watchSignals: TERM asks to read the stop request; the others that a closing
// terminal or a key press may send are not for a detached process.
func watchSignals() <-chan os.Signal {
	// Caught, not ignored: ignoring would be inherited by the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	return c
}

// watch returns when the program has ended or has to; where the sandbox lingers,
// when that has to end, or its stub is gone.
func (s *supervisor) watch(signals <-chan os.Signal) {
	var ttl, look, again <-chan time.Time
	looks := 0
	if seconds := s.rec.Limits.TTLSeconds; seconds > 0 {
		timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
		defer timer.Stop()
		ttl = timer.C
	}
	if s.soft {
		ticker := time.NewTicker(watchdogEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case report, open := <-s.stub.reports:
			var over bool
			if again, over = s.heard(report, open); over {
				return
			}
		case <-again:
			again = s.putDown()
		case <-signals:
			s.catchUp()
			s.stop = s.readStop()
			s.persuade(time.Duration(s.stop.GraceSeconds*float64(time.Second)), s.stop.Patient)
			return
		case <-ttl:
			s.catchUp()
			s.timedOut = true
			s.persuade(ttlGrace, false)
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

// readStop finds out who asked. A TERM without a request came from outside
// sbx and counts as a stop all the same: the supervisor never outlives it.
func (s *supervisor) readStop() *record.Stop {
	stop, err := s.store.Stop(s.rec.ID)
	if err != nil || stop == nil {
		return &record.Stop{By: "SIGTERM to the supervisor", At: s.now().UTC()}
	}
	return stop
}
