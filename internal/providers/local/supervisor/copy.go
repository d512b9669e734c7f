//go:build unix

package supervisor

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"sbx/internal/providers/local/runlog"
)

// flushAfter is how long an unfinished line may wait for its end before it is stored: a
// prompt or a progress bar has no line end.
const flushAfter = time.Second

// maxPipe is the capacity of a pipe, unless root enlarged it.
const maxPipe = 1 << 20

// copier copies one stream of the program into the log.
type copier struct {
	pipe    *os.File
	sink    io.Writer
	flush   *time.Timer
	drained chan struct{} // signalled when the content of the pipe is stored; closed at the pipe's end
}

// copyOutput copies the program's output into the log, until both pipes end.
func (s *supervisor) copyOutput(stdout, stderr *os.File) {
	s.copyDone = make(chan struct{})
	flush := time.AfterFunc(flushAfter, s.output.Flush)
	var both sync.WaitGroup
	for name, pipe := range map[runlog.Stream]*os.File{runlog.Stdout: stdout, runlog.Stderr: stderr} {
		c := &copier{pipe: pipe, sink: s.output.Stream(name), flush: flush, drained: make(chan struct{}, 1)}
		s.copiers = append(s.copiers, c)
		both.Go(c.copyUntilEnd)
	}
	go func() {
		both.Wait()
		flush.Stop()
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
		c.flush.Reset(flushAfter)
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
	limit := time.After(drainLimit)
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
