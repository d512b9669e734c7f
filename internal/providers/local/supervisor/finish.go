//go:build unix

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// How long the end may take before it is called unproven: the kernel needs
// milliseconds; a process in an uninterruptible wait may need for ever.
const (
	killLimit  = 10 * time.Second
	drainLimit = 2 * time.Second
)

// note keeps what the stub saw of the program's end.
func (s *supervisor) note(e *wire.Exited) {
	if e == nil {
		return
	}
	s.rec.Exit = &record.Exit{Signal: e.Signal, LeftoverKilled: e.Killed}
	if e.Signal == 0 {
		s.rec.Exit.Code = &e.Code
	}
}

// finish ends what is left, proves it, and writes the last record.
func (s *supervisor) finish() int {
	emptied := s.clearForSure()
	at := s.now().UTC()
	e := s.facts(at)
	e.Emptied, e.Stop, e.TimedOut, e.WatchdogBytes, e.SupervisorLost = emptied, s.stop, s.timedOut, s.watchHit, s.stubLost
	s.rec.Close(e)
	s.rec.EndedAt = at
	s.rec.State = s.rec.EndState()
	s.rec.Note(at, string(s.rec.State), describe(e))
	if err := s.writeLast(); err != nil {
		return s.complain("writing the last record", err)
	}
	if err := s.store.Finish(s.rec.ID); err != nil {
		return s.complain("letting go of the lock", err)
	}
	return 0
}

// clearForSure does not come back before the tree is empty. A process that the
// kernel cannot end yet keeps the sandbox in `terminating`, which is the truth.
func (s *supervisor) clearForSure() string {
	for {
		if proof := s.clear(); proof != "" {
			return proof
		}
		if s.rec.State != sandbox.StateTerminating {
			s.rec.State = sandbox.StateTerminating
			s.rec.Note(s.now(), "terminating", "processes are left that do not end")
			if err := s.store.Write(s.rec); err != nil {
				s.complain("recording the unfinished end", err)
			}
		}
		<-time.After(time.Second)
	}
}

// facts are what is known now of the program's end, if nothing else brought it on.
func (s *supervisor) facts(at time.Time) record.Exit {
	e := record.Exit{Signal: 9} // the stub died with its program: only a kill does that
	if s.rec.Exit != nil {
		e = *s.rec.Exit
	}
	e.At, e.DroppedBytes = &at, s.output.Dropped()
	if !s.last.at.IsZero() {
		e.LastBytes, e.LastSampleAt = &s.last.bytes, s.last.at
	}
	if c := s.counted; c != nil {
		e.OOMKills, e.PeakBytes, e.CPUSeconds, e.CounterSource = c.OOMKills, c.PeakBytes, c.CPUSeconds, c.Source
	}
	if e.Signal == int(syscall.SIGKILL) && e.OOMKills == nil {
		e.KernelLog, _ = cgroup.KilledForMemory(s.rec.Program.PID, at.Sub(s.rec.StartedAt))
	}
	return e
}

func describe(e record.Exit) string {
	switch {
	case e.Stop != nil:
		return "stopped by " + e.Stop.By
	case e.TimedOut:
		return "its time was over"
	case e.WatchdogBytes > 0:
		return fmt.Sprintf("the watchdog saw %d MiB", e.WatchdogBytes/sandbox.MiB)
	case e.SupervisorLost:
		return "its stub was lost"
	case e.Code != nil:
		return fmt.Sprintf("exit %d", *e.Code)
	}
	return fmt.Sprintf("signal %d", e.Signal)
}

// clear kills the whole tree, waits until it is empty, collects the kernel's
// counters and removes the cgroup. It returns the proof, or "" without one.
func (s *supervisor) clear() string {
	ctx, cancel := context.WithTimeout(context.Background(), killLimit) //nolint:forbidigo // the end of the process owns its own limit
	defer cancel()
	proof := ""
	if s.group != nil {
		if _, err := s.group.Kill(ctx); err == nil {
			proof = "cgroup empty, "
		}
	}
	if s.stub != nil {
		s.killStub()
		s.drainReports()
		s.awaitStub(ctx)
	}
	if !s.reapAll(ctx) || len(s.inGroup()) > 0 {
		return ""
	}
	s.count()
	if s.group != nil {
		if err := s.group.Remove(); err != nil {
			s.complain("removing the cgroup", err)
		}
	}
	s.closeOutput()
	_ = os.Remove(s.store.Socket(s.rec.ID)) // it leads nowhere any more; the next sweep removes it
	return proof + "no process of the tree left"
}

// drainReports takes a last report that was on its way when the stub died.
func (s *supervisor) drainReports() {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	for {
		select {
		case r, open := <-s.stub.reports:
			if !open {
				return
			}
			if s.rec.Exit == nil {
				s.note(r.Exited)
			}
		case <-limit.C:
			return
		}
	}
}

// count reads the kernel's counters while the cgroup exists.
func (s *supervisor) count() {
	if s.group == nil || s.rec.StartedAt.IsZero() {
		return
	}
	stats := s.group.Stats()
	s.counted = &stats
}

// closeOutput waits for the last bytes. Somebody outside the tree may hold a
// pipe open; the end does not wait for them.
func (s *supervisor) closeOutput() {
	if s.copied != nil {
		limit := time.NewTimer(drainLimit)
		defer limit.Stop()
		select {
		case <-s.copied:
		case <-limit.C:
		}
	}
	if s.output != nil {
		if err := s.output.Close(); err != nil {
			s.complain("closing the output", err)
		}
	}
}

// writeLast tries again for a while: a full disk may have room in a moment,
// and an end that nobody can read about looks like a lost supervisor.
func (s *supervisor) writeLast() error {
	var err error
	for pause := 100 * time.Millisecond; pause < 10*time.Second; pause *= 2 {
		if err = s.store.Write(s.rec); err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EROFS) {
			return err
		}
		<-time.After(pause)
	}
	return err
}

// complain writes one line into the supervisor's own log, which is its
// standard error.
func (s *supervisor) complain(doing string, err error) int {
	fmt.Fprintf(s.log, "%s %s: %v\n", s.now().UTC().Format(time.RFC3339), doing, err)
	return 1
}
