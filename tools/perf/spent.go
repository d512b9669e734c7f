package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// spent is what one process took, from its start to its end.
type spent struct {
	wall, cpu   float64 // ms; cpu is user and system time of all its threads
	peak        float64 // MB of resident memory, 1,000,000 bytes each
	first, last float64 // ms until the first and the last mark in its output
	marks       int     // how many there were
	exit        int
	errs        string
}

// spend runs a program and counts a mark of each row in its output as it comes. It
// keeps nothing of it, since what we hold would hide what the program holds.
func spend(cmd *exec.Cmd, mark string) (spent, error) {
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
	s, err := count(out, mark, begun)
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

// count reads until the output ends. A mark may lie across two reads.
func count(out io.Reader, mark string, begun time.Time) (spent, error) {
	var s spent
	chunk := make([]byte, 64<<10)
	kept := 0
	for {
		n, err := out.Read(chunk[kept:])
		n += kept
		if marks := bytes.Count(chunk[:n], []byte(mark)); marks > 0 {
			s.last = since(begun)
			if s.marks == 0 {
				s.first = s.last
			}
			s.marks += marks
		}
		kept = copy(chunk, chunk[n-min(n, len(mark)-1):n])
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, err
		}
	}
}

func since(begun time.Time) float64 { return float64(time.Since(begun).Microseconds()) / 1000 }

// peak reads the most memory that an ended process held. The kernel counts what we
// held ourselves when it was started, so a figure of about 12 MB may be ours.
func peak(cmd *exec.Cmd) (float64, error) {
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, errors.New("the kernel tells no resource usage")
	}
	return float64(usage.Maxrss) * 1024 / 1e6, nil
}
