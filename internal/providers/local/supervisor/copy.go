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

// flushAfter is how long an unfinished line may wait for its end before it is
// stored as it is: a prompt or a progress bar has none.
const flushAfter = time.Second

// maxPipe is the most that a pipe holds, unless root made it larger.
const maxPipe = 1 << 20

// copier moves one stream of the program into the log.
type copier struct {
	pipe    *os.File
	sink    io.Writer
	flush   *time.Timer
	drained chan struct{} // told when what was in the pipe is stored; closed at the pipe's end
}

// copyOutput moves what the program writes into the log, until both pipes end.
func (s *supervisor) copyOutput(stdout, stderr *os.File) {
	s.copied = make(chan struct{})
	flush := time.AfterFunc(flushAfter, s.output.Flush)
	var both sync.WaitGroup
	for name, pipe := range map[runlog.Stream]*os.File{runlog.Stdout: stdout, runlog.Stderr: stderr} {
		c := &copier{pipe: pipe, sink: s.output.Stream(name), flush: flush, drained: make(chan struct{}, 1)}
		s.copiers = append(s.copiers, c)
		both.Go(c.run)
	}
	go func() {
		both.Wait()
		flush.Stop()
		close(s.copied)
	}()
}

func (c *copier) run() {
	defer close(c.drained)
	defer c.pipe.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := c.pipe.Read(buf)
		c.store(buf[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.empty(buf)
		case err != nil:
			return
		}
	}
}

func (c *copier) store(text []byte) {
	if len(text) > 0 {
		_, _ = c.sink.Write(text) // a log that cannot be written counts what it drops and never blocks the program
		c.flush.Reset(flushAfter)
	}
}

// empty stores what is in the pipe now, without waiting for more, and says so. It
// is bounded: what the program left behind may write without a pause.
func (c *copier) empty(buf []byte) {
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
			return // empty, or at its end, which the next read tells
		}
		c.store(buf[:n])
		left -= n
	}
}

// drain returns when all that was written so far is stored. A deadline in the past
// wakes the copiers from their wait for more.
func (s *supervisor) drain() {
	limit := time.NewTimer(drainLimit)
	defer limit.Stop()
	for _, c := range s.copiers {
		if c.pipe.SetReadDeadline(time.Unix(1, 0)) != nil {
			continue // its pipe has ended
		}
		select {
		case <-c.drained:
		case <-limit.C:
			return
		}
	}
}
