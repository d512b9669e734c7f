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

	"sbx/internal/sandbox"
)

// kernelLog is the device of the kernel's messages, one record per read.
const kernelLog = "/dev/kmsg"

// clockSlack is the largest difference between the time stamps of the kernel log (the
// scheduler's clock) and CLOCK_MONOTONIC.
const clockSlack = 2 * time.Second

// initialPIDs is the PID namespace of the PIDs in the kernel log (PROC_PID_INIT_INO).
const initialPIDs = "pid:[4026531836]"

// ReadKills searches the kernel log for kills for lack of memory, at most within before now: of
// the process, and of any process in the control group of the sandbox id (S3-3). The result is
// empty where the log is not readable (kernel.dmesg_restrict), or this process is in another PID
// namespace than the log.
func ReadKills(pid int, id string, within time.Duration) Kills {
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != initialPIDs {
		return Kills{}
	}
	var clock unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock); err != nil {
		return Kills{}
	}
	fd, err := unix.Open(kernelLog, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Kills{}
	}
	defer unix.Close(fd)
	now := time.Duration(clock.Nano())
	search := killSearch{pid: pid, id: id, since: now - within - clockSlack, now: now}
	buffer := make([]byte, 8<<10) // a record is at most 1 KiB of text, escaped
	for {
		n, err := unix.Read(fd, buffer)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EPIPE): // the oldest records were overwritten while it was read
			search.gap = true
			continue
		case errors.Is(err, syscall.EAGAIN), err == nil && n == 0:
			search.found.Complete = search.reaches && !search.gap
			return search.found
		case err != nil:
			return search.found
		}
		search.add(string(buffer[:n]))
	}
}

// killSearch reads the records of the log from the oldest to the newest.
type killSearch struct {
	pid        int
	id         string
	since, now time.Duration // of the log's clock
	reaches    bool          // the oldest record is the log's first, or older than since
	gap        bool
	started    bool
	found      Kills
}

// add reads one record, "priority,sequence,microseconds,flags;text".
func (s *killSearch) add(record string) {
	head, rest, cut := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	if !cut || len(fields) < 3 {
		return
	}
	stamp, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return
	}
	at := time.Duration(stamp) * time.Microsecond
	if !s.started {
		s.started, s.reaches = true, fields[1] == "0" || at < s.since
	}
	priority, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || priority >= 8 || at < s.since { // from 8 on it is written by a program: the kernel's own records have facility 0
		return
	}
	text, _, _ := strings.Cut(rest, "\n")
	s.addSummary(text, at)
	lower := strings.ToLower(text)
	if strings.Contains(text, fmt.Sprintf(" process %d (", s.pid)) && strings.Contains(lower, "out of memory") && strings.Contains(lower, "kill") {
		s.found.Line, s.found.Last = text, max(1, s.now-at)
	}
}

// addSummary reads the line that precedes a kill, "oom-kill:constraint=C,...,oom_memcg=G,
// task_memcg=G,task=NAME,pid=N,uid=N" (since 5.0): oom_memcg is the group whose limit was
// reached, and is missing where the machine ran out of memory.
func (s *killSearch) addSummary(text string, at time.Duration) {
	list, ok := strings.CutPrefix(text, "oom-kill:")
	if !ok {
		return
	}
	values := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok && values[key] == "" { // the name of the task comes late and may hold anything
			values[key] = value
		}
	}
	if s.id == "" || s.found.Line != "" || !strings.Contains(values["task_memcg"], s.id) {
		return // what is killed after the process itself does not explain its end
	}
	s.found.Last = max(1, s.now-at)
	s.found.OwnLimit = sandbox.False
	if strings.Contains(values["oom_memcg"], s.id) {
		s.found.OwnLimit = sandbox.True
	}
}
