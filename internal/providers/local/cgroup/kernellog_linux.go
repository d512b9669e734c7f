package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernelLog is the device of the kernel's messages, one record per read.
const kernelLog = "/dev/kmsg"

// clockSlack is the largest difference between the time stamps of the kernel log (the
// scheduler's clock) and CLOCK_MONOTONIC.
const clockSlack = 2 * time.Second

// initialPIDs is the PID namespace of the PIDs in the kernel log (PROC_PID_INIT_INO).
const initialPIDs = "pid:[4026531836]"

// KilledForMemory searches the kernel log for the line by which the kernel killed a process
// for lack of memory, at most within before now. It is for processes without a control group
// and its counters (S3-3). found is false also where the log is not readable
// (kernel.dmesg_restrict), or this process is in another PID namespace than the log.
func KilledForMemory(pid int, within time.Duration) (line string, found bool) {
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != initialPIDs {
		return "", false
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return "", false
	}
	fd, err := unix.Open(kernelLog, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	since := time.Duration(now.Nano()) - within - clockSlack
	buffer := make([]byte, 8<<10) // a record is at most 1 KiB of text, escaped
	for {
		n, err := unix.Read(fd, buffer)
		switch {
		case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.EINTR):
			continue // the oldest records were overwritten
		case err != nil || n == 0:
			return line, found
		}
		if text, ok := parseOOMKill(string(buffer[:n]), pid, since); ok {
			line, found = text, true
		}
	}
}

// parseOOMKill reads one record, "priority,sequence,microseconds,flags;text", and returns its
// text where it reports a kill for lack of memory.
func parseOOMKill(record string, pid int, since time.Duration) (text string, ok bool) {
	head, rest, cut := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	if !cut || len(fields) < 3 {
		return "", false
	}
	priority, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || priority >= 8 {
		return "", false // written by a program: the kernel's own records have facility 0
	}
	at, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || time.Duration(at)*time.Microsecond < since {
		return "", false
	}
	text, _, _ = strings.Cut(rest, "\n")
	lower := strings.ToLower(text)
	named := strings.Contains(text, fmt.Sprintf(" process %d (", pid))
	return text, named && strings.Contains(lower, "out of memory") && strings.Contains(lower, "kill")
}
