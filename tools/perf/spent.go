package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// spent is what one process took, from its start to its end.
type spent struct {
	wall, cpu   float64 // ms; cpu is user and system time of all its threads
	peak        float64 // MB of resident memory, 1,000,000 bytes each
	first, last float64 // ms until the first and the last line of its output
	lines       int     // of its output
	exit        int
	errs        string
}

// spend runs a program and counts its output as it comes, without keeping it.
func spend(cmd *exec.Cmd) (spent, error) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return spent{}, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return spent{}, err
	}
	s, err := count(out, begun)
	if ended := cmd.Wait(); err == nil {
		err = ended
	}
	s.wall, s.errs = since(begun), errs.String()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		s.exit, err = exit.ExitCode(), nil // for the caller to judge
	}
	if err != nil {
		return s, err
	}
	s.cpu = float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds()) / 1000
	s.peak, err = peak(cmd)
	return s, err
}

// count reads lines until the output ends.
func count(out io.Reader, begun time.Time) (spent, error) {
	var s spent
	chunk := make([]byte, 64<<10)
	for {
		n, err := out.Read(chunk)
		if lines := bytes.Count(chunk[:n], []byte("\n")); lines > 0 {
			s.last = since(begun)
			if s.lines == 0 {
				s.first = s.last
			}
			s.lines += lines
		}
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
	}
}

func since(begun time.Time) float64 { return float64(time.Since(begun).Microseconds()) / 1000 }

// peak reads the most memory that an ended process held. The kernel hands a
// parent's peak to a child that it starts, so what is not above ours is unknown.
func peak(cmd *exec.Cmd) (float64, error) {
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("the kernel tells no resource usage")
	}
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	if own, ok := statusField(string(raw), "VmHWM"); !ok || float64(usage.Maxrss) <= own {
		return 0, fmt.Errorf("%s: its peak of %d KiB is hidden behind our own of %.0f", cmd.Path, usage.Maxrss, own)
	}
	return float64(usage.Maxrss) * 1024 / 1e6, nil
}
