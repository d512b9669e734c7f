//go:build unix

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"sbx/internal/poll"
	"sbx/internal/providers/local/cgroup"
	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/wire"
	"sbx/internal/sandbox"
)

// How long the end may take before it counts as unproven: the kernel needs milliseconds; an
// uninterruptible process may never end.
const (
	killLimit  = 10 * time.Second
	drainLimit = 2 * time.Second
)

// noteExit records the stub's report of the program's exit.
func (s *supervisor) noteExit(e *wire.Exited) {
	if e == nil {
		return
	}
	s.rec.Exit = &record.Exit{Signal: e.Signal, LeftoverKilled: e.Killed}
	if e.Signal == 0 {
		s.rec.Exit.Code = &e.Code
	}
}

// finishSandbox ends the remaining processes, proves it, and writes the last record.
func (s *supervisor) finishSandbox() int {
	emptied := s.clearForSure()
	at := s.now().UTC()
	e := s.exitFacts(at)
	e.Emptied, e.Stop, e.TimedOut, e.WatchdogBytes, e.SupervisorLost = emptied, s.stop, s.timedOut, s.watchHit, s.stubLost
	s.rec.Close(e)
	s.rec.EndedAt = at
	s.rec.State = s.rec.EndState()
	s.rec.Note(at, string(s.rec.State), describeExit(e))
	if err := s.writeLast(); err != nil {
		return s.logError("writing the last record", err)
	}
	if err := s.store.Finish(s.rec.ID); err != nil {
		return s.logError("releasing the lock", err)
	}
	return 0
}

// clearForSure returns when the tree is empty. While the kernel cannot end a process, the
// sandbox stays in `terminating`.
func (s *supervisor) clearForSure() string {
	for {
		if proof := s.clearTree(); proof != "" {
			return proof
		}
		if s.rec.State != sandbox.StateTerminating {
			s.rec.State = sandbox.StateTerminating
			s.rec.Note(s.now(), "terminating", "some processes do not end")
			if err := s.store.Write(s.rec); err != nil {
				s.logError("recording the unfinished end", err)
			}
		}
		<-time.After(time.Second)
	}
}

// exitFacts is what is known now of the program's exit, without the reason of a stop.
func (s *supervisor) exitFacts(at time.Time) record.Exit {
	e := record.Exit{Signal: 9} // the stub died with its program, which only a SIGKILL causes
	if s.rec.Exit != nil {
		e = *s.rec.Exit
	}
	e.At, e.DroppedBytes = &at, s.output.Dropped()
	if !s.last.at.IsZero() {
		e.LastBytes, e.LastSampleAt = &s.last.bytes, s.last.at
	}
	if c := s.counters; c != nil {
		e.TasksRefused = c.Refused
		e.OOMKills, e.PeakBytes, e.CPUSeconds, e.CounterSource = c.OOMKills, c.PeakBytes, c.CPUSeconds, c.Source
	}
	if e.OOMKills == nil && e.Signal == int(syscall.SIGKILL) || e.OOMKills != nil && *e.OOMKills > 0 {
		k := cgroup.ReadKills(s.rec.Program.PID, s.rec.ID, at.Sub(s.rec.StartedAt))
		e.KernelLog, e.NotLogged, e.OwnLimit = k.Line, k.Complete && k.Line == "", k.OwnLimit
		died := s.reported
		if died.IsZero() {
			died = time.Now()
		}
		if k.Last == 0 && !k.Complete {
			k.Last = s.oom.before(e.OOMKills, died)
		}
		if k.Last > 0 {
			e.LastKillAt = at.Add(-k.Last)
		}
	}
	return e
}

func describeExit(e record.Exit) string {
	switch {
	case e.Stop != nil:
		return "stopped by " + e.Stop.By
	case e.TimedOut:
		return "it reached its time limit"
	case e.WatchdogBytes > 0:
		return fmt.Sprintf("the watchdog saw %d MiB", e.WatchdogBytes/sandbox.MiB)
	case e.SupervisorLost:
		return "its stub was lost"
	case e.Code != nil:
		return fmt.Sprintf("exit %d", *e.Code)
	}
	return fmt.Sprintf("signal %d", e.Signal)
}

// clearTree kills the whole tree, waits until it is empty, reads the kernel's counters and
// removes the cgroup. It returns the proof, or "" without one.
func (s *supervisor) clearTree() string {
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
	s.readCounters()
	if s.group != nil {
		if err := s.group.Remove(); err != nil {
			s.logError("removing the cgroup", err)
		}
	}
	s.closeOutput()
	_ = os.Remove(s.store.Socket(s.rec.ID)) // if this fails, the next sweep removes it
	return proof + "no process of the tree is left"
}

// drainReports reads a last report that was in transit when the stub died.
func (s *supervisor) drainReports() {
	limit := time.After(s.timeScale.Limit(drainLimit))
	for {
		select {
		case r, open := <-s.stub.reports:
			if !open {
				return
			}
			if s.rec.Exit == nil {
				s.noteExit(r.Exited)
			}
		case <-limit:
			return
		}
	}
}

// readCounters reads the kernel's counters while the cgroup exists.
func (s *supervisor) readCounters() {
	if s.group == nil || s.rec.StartedAt.IsZero() {
		return
	}
	stats := s.group.Stats()
	s.counters = &stats
}

// closeOutput waits for the last bytes, up to drainLimit: a process outside the tree may hold
// a pipe open.
func (s *supervisor) closeOutput() {
	if s.copyDone != nil {
		select {
		case <-s.copyDone:
		case <-time.After(s.timeScale.Limit(drainLimit)):
		}
	}
	if s.output != nil {
		if err := s.output.Close(); err != nil {
			s.logError("closing the output", err)
		}
	}
}

// writeLast retries for about 13 s: a full disk may have space again, and a sandbox without a
// last record looks as if its supervisor was lost.
func (s *supervisor) writeLast() error {
	var err error
	pauses := poll.NewBackoff(100*time.Millisecond, 10*time.Second)
	for range 7 {
		if err = s.store.Write(s.rec); err == nil || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.EROFS) {
			return err
		}
		<-pauses.After()
	}
	return err
}

// logError writes one line into the supervisor's own log, its standard error.
func (s *supervisor) logError(doing string, err error) int {
	fmt.Fprintf(s.log, "%s %s: %v\n", s.now().UTC().Format(time.RFC3339), doing, err)
	return 1
}

// killStub kills the stub, and with it everything in its namespace.
func (s *supervisor) killStub() {
	s.stub.life.Close()
	if s.stub.handle != nil {
		_ = s.stub.handle.Signal(syscall.SIGKILL) // reaping is the proof
		return
	}
	_ = s.stub.process.Signal(syscall.SIGKILL) // reaping is the proof
}

// stubLimit limits the wait for a killed stub, which ends at once unless the kernel cannot end
// a process in its namespace yet.
const stubLimit = 100 * time.Millisecond

// awaitStub waits briefly for the stub's end: a search for remaining processes costs more, and
// finds none once the stub is dead.
func (s *supervisor) awaitStub(ctx context.Context) {
	if s.stub.handle == nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, s.timeScale.Limit(stubLimit))
	defer done()
	_ = s.stub.handle.Wait(ctx) // reaping is the proof
}

// reapAll kills and reaps until this process has no child left; false when ctx ends before.
// Orphans of the tree become children of this process, so without children the tree is empty.
func (s *supervisor) reapAll(ctx context.Context) bool {
	for pauses := poll.NewBackoff(time.Millisecond, 50*time.Millisecond); ctx.Err() == nil; {
		for {
			pid, _, left := waitAny(false)
			if !left {
				return true
			}
			if pid == 0 {
				break
			}
		}
		endDescendants(ctx, s.self.PID)
		_ = pauses.Sleep(ctx)
	}
	return false
}

// endDescendants kills everything below a process, also a fork bomb: each process is stopped
// when it is found. It returns how many there were.
func endDescendants(ctx context.Context, pid int) int {
	met, _ := identity.Host().End(ctx, func() ([]identity.Stat, error) { return identity.Host().Descendants(pid) }) // callers check what is left
	return met
}

// waitAny reaps one child; false when there is none left.
func waitAny(block bool) (pid int, status syscall.WaitStatus, left bool) {
	options := syscall.WNOHANG
	if block {
		options = 0
	}
	for {
		pid, err := syscall.Wait4(-1, &status, options, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, 0, false
		}
		return pid, status, true
	}
}
