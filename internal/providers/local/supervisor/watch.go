//go:build unix

package supervisor

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sbx/internal/providers/local/record"
	"sbx/internal/providers/local/runlog"
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

// oomEvery is the interval at which the kernel's counter of OOM kills is read, so that its last growth has a
// time also where the kernel's log cannot be read.
const oomEvery = time.Second

// oomQuiet is how long before a death the counter must have grown last, to have nothing to do with it: a read
// may be late, and so may the report of the death.
const oomQuiet = 3 * oomEvery

// oomGrowth is when the counter of OOM kills was seen to grow last.
type oomGrowth struct {
	kills int64
	at    time.Time // zero = it has not grown
}

func (g *oomGrowth) note(kills *int64, now time.Time) {
	if kills != nil && *kills > g.kills {
		g.kills, g.at = *kills, now
	}
}

// before is how long before a death the counter grew last, by its value after it; 0 where that was at the
// death, or is not known.
func (g *oomGrowth) before(kills *int64, died time.Time) time.Duration {
	if kills == nil || *kills != g.kills || g.at.IsZero() || died.Sub(g.at) < oomQuiet {
		return 0
	}
	return died.Sub(g.at)
}

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
	var ttl, look, again, count <-chan time.Time
	looks := 0
	if seconds := s.rec.Limits.TTLSeconds; seconds > 0 {
		ttl = time.After(time.Duration(seconds * float64(time.Second)))
	}
	if s.softLimit {
		ticker := time.NewTicker(watchdogEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	if s.group != nil && s.group.OOMKills() != nil {
		ticker := time.NewTicker(oomEvery)
		defer ticker.Stop()
		count = ticker.C
	}
	for {
		select {
		case <-count:
			s.countOOMKills()
		case report, open := <-s.stub.reports:
			var over bool
			if again, over = s.handleReport(report, open); over {
				return
			}
		case <-again:
			again = s.writeProgramEnd()
		case <-signals:
			s.endByRequest()
			return
		case <-ttl:
			if ttl = s.laterEnd(); ttl == nil {
				s.endOfTime()
				return
			}
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

// countOOMKills notes what the kernel has killed for memory while the program ran.
func (s *supervisor) countOOMKills() {
	if !s.rec.ProgramEnded() {
		s.oom.note(s.group.OOMKills(), time.Now())
	}
}

// endOfTime ends the sandbox since its time is over.
func (s *supervisor) endOfTime() {
	s.catchUp()
	s.timedOut = true
	s.terminateTree(ttlGrace, false)
}

// endByRequest ends the sandbox as a stop asks for it.
func (s *supervisor) endByRequest() {
	s.catchUp()
	s.stop = s.readStop()
	s.terminateTree(time.Duration(s.stop.GraceSeconds*float64(time.Second)), s.stop.FullGrace)
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
// channel is the channel of writeProgramEnd, nil before the program's end.
func (s *supervisor) handleReport(r wire.StubReport, open bool) (again <-chan time.Time, over bool) {
	s.noteExit(r.Exited)
	s.reported = time.Now()
	switch {
	case !open:
		s.stubLost = s.rec.ProgramEnded()
		return nil, true
	case r.Exited == nil:
		return nil, false
	case !s.rec.KeepAfterExit:
		return nil, true
	}
	s.programEnded()
	return s.writeProgramEnd(), false
}

// catchUp processes a report that is already waiting, so that a later event does not count as
// the reason of the program's end.
func (s *supervisor) catchUp() {
	if !s.rec.KeepAfterExit {
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

// flushAfter is how long an unfinished line may wait for its end before it is stored: a
// prompt or a progress bar has no line end.
const flushAfter = time.Second

// delayedFlush calls flush flushAfter the first of some writes. Later writes do not defer it: a
// program that writes all the time and ends no line would never be stored.
type delayedFlush struct {
	timer *time.Timer
	due   atomic.Bool
}

func newDelayedFlush(flush func()) *delayedFlush {
	d := &delayedFlush{}
	d.timer = time.AfterFunc(flushAfter, func() {
		d.due.Store(false)
		flush()
	})
	d.timer.Stop()
	return d
}

func (d *delayedFlush) noteWrite() {
	if !d.due.Swap(true) {
		d.timer.Reset(flushAfter)
	}
}

// maxPipe is the capacity of a pipe, unless root enlarged it.
const maxPipe = 1 << 20

// copier copies one stream of the program into the log.
type copier struct {
	pipe    *os.File
	sink    io.Writer
	flush   *delayedFlush
	drained chan struct{} // signalled when the content of the pipe is stored; closed at the pipe's end
}

// copyOutput copies the program's output into the log, until both pipes end.
func (s *supervisor) copyOutput(stdout, stderr *os.File) {
	s.copyDone = make(chan struct{})
	flush := newDelayedFlush(s.output.Flush)
	var both sync.WaitGroup
	for name, pipe := range map[runlog.Stream]*os.File{runlog.Stdout: stdout, runlog.Stderr: stderr} {
		c := &copier{pipe: pipe, sink: s.output.Stream(name), flush: flush, drained: make(chan struct{}, 1)}
		s.copiers = append(s.copiers, c)
		both.Go(c.copyUntilEnd)
	}
	go func() {
		both.Wait()
		flush.timer.Stop()
		close(s.copyDone)
	}()
}

func (c *copier) copyUntilEnd() {
	defer close(c.drained)
	defer c.pipe.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := c.pipe.Read(buf)
		c.writeLog(buf[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.drainPipe(buf)
		case err != nil:
			return
		}
	}
}

func (c *copier) writeLog(text []byte) {
	if len(text) > 0 {
		_, _ = c.sink.Write(text) // on a write error the log counts the dropped bytes and never blocks the program
		c.flush.noteWrite()
	}
}

// drainPipe stores what is in the pipe now, without waiting for more, and signals drained. It
// is bounded: remaining processes of the program may write without a pause.
func (c *copier) drainPipe(buf []byte) {
	defer func() { c.drained <- struct{}{} }()
	raw, err := c.pipe.SyscallConn()
	if err != nil || c.pipe.SetReadDeadline(time.Time{}) != nil {
		return
	}
	for left := maxPipe; left > 0; {
		n := 0
		looked := raw.Read(func(fd uintptr) bool {
			var err error
			for n, err = syscall.Read(int(fd), buf); errors.Is(err, syscall.EINTR); {
				n, err = syscall.Read(int(fd), buf)
			}
			return true
		})
		if looked != nil || n <= 0 {
			return // empty, or at its end, which the next read shows
		}
		c.writeLog(buf[:n])
		left -= n
	}
}

// drainOutput returns when all output written so far is stored. A deadline in the past
// interrupts the copiers' reads.
func (s *supervisor) drainOutput() {
	limit := time.After(s.timeScale.Limit(drainLimit))
	for _, c := range s.copiers {
		if c.pipe.SetReadDeadline(time.Unix(1, 0)) != nil {
			continue // its pipe has ended
		}
		select {
		case <-c.drained:
		case <-limit:
			return
		}
	}
}
