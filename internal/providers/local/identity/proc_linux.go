package identity

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// smallFile is the buffer size for files of one short record: the longest, stat, is below 700
// bytes with the widest numbers.
const smallFile = 1024

func (p Proc) path(pid int, name string) string {
	root := p.Root
	if root == "" {
		root = "/proc"
	}
	return root + "/" + strconv.Itoa(pid) + "/" + name
}

// readSmall reads a short file in one call, without an os.File: the watchdog reads the whole
// table ten times a second.
func small(path string, room []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, vanished(&os.PathError{Op: "open", Path: path, Err: err})
	}
	n, err := unix.Read(fd, room)
	_ = unix.Close(fd)
	if err != nil {
		return nil, vanished(&os.PathError{Op: "read", Path: path, Err: err})
	}
	return room[:n], nil
}

// asErrDead turns the two errors of procfs for "no such process" into ErrDead.
func vanished(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return ErrDead
	}
	return err
}

// Stat reads one process. Errors: ErrDead when there is none (or the mount hides it).
func (p Proc) Stat(pid int) (Stat, error) {
	var room [smallFile]byte
	text, err := small(p.path(pid, "stat"), room[:])
	if err != nil {
		return Stat{}, err
	}
	return parseStat(text, int64(unix.Getpagesize()))
}

func (p Proc) pids() ([]int, error) {
	root := p.Root
	if root == "" {
		root = "/proc"
	}
	return numbers(root)
}

// readLines calls more for each line of a file until it returns false. Lines beyond 4 KiB are
// skipped.
func lines(path string, more func(line []byte) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return vanished(err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 4096)
	long := false
	for {
		line, err := r.ReadSlice('\n')
		if !long && !errors.Is(err, bufio.ErrBufferFull) && len(line) > 0 && !more(line) {
			return nil
		}
		long = errors.Is(err, bufio.ErrBufferFull)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !long:
			return vanished(err)
		}
	}
}

func (p Proc) hasEntry(pid int, entry string) bool {
	f, err := os.Open(p.path(pid, "environ"))
	if err != nil {
		return false
	}
	defer f.Close()
	m := entryMatcher{want: entry}
	var piece [4096]byte
	for !m.found {
		n, err := f.Read(piece[:])
		m.feed(piece[:n])
		if err != nil {
			if errors.Is(err, io.EOF) {
				m.end()
			}
			break
		}
	}
	return m.found
}

// IgnoresTerm reports whether SIGTERM will not end the process: it is ignored, or left at its
// default by the init of a PID namespace, to which the kernel then does not deliver it. A
// handler that does nothing is not visible. A blocked TERM is not an ignored one: a shell
// blocks all signals while it forks, and a program that waits for signals with sigwait or
// signalfd always blocks them. Errors: ErrDead, fs.ErrPermission, errors.ErrUnsupported.
func (p Proc) IgnoresTerm(pid int) (bool, error) {
	d, err := dispositionsIn(p.path(pid, "status"))
	return err == nil && d.ignoresTerm(), err
}

func dispositionsIn(path string) (dispositions, error) {
	var d dispositions
	err := lines(path, func(line []byte) bool { d.read(line); return true })
	return d, err
}

// IOOperations counts the read and write calls of the process since its start, with its
// threads and without its children; false when that is unknown (another user's process, or
// not Linux). Traffic by send and recv is not included.
func (p Proc) IOOperations(pid int) (int64, bool) {
	var room [smallFile]byte
	text, err := small(p.path(pid, "io"), room[:])
	if err != nil {
		return 0, false
	}
	return parseOperations(text)
}

// parseOperations adds syscr and syscw of /proc/PID/io; false unless both are present.
func parseOperations(text []byte) (int64, bool) {
	var sum int64
	found := 0
	for line := range bytes.Lines(text) {
		key, value, _ := bytes.Cut(line, []byte(": "))
		if string(key) != "syscr" && string(key) != "syscw" {
			continue
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 62)
		if err != nil || n < 0 {
			return 0, false
		}
		sum += n
		found++
	}
	if found != 2 {
		return 0, false
	}
	return sum, true
}

// Busiest is how long, in nanoseconds since its start, the busiest living thread of a process
// has run or was ready to run and waited for a processor, by the first two figures of each
// thread's schedstat; false when that is unknown (not Linux, or a kernel without accounting).
func (p Proc) Busiest(pid int) (int64, bool) {
	threads, err := os.ReadDir(p.path(pid, "task"))
	if err != nil {
		return 0, false
	}
	most, known := int64(0), false
	for _, thread := range threads {
		raw, err := os.ReadFile(p.path(pid, "task/"+thread.Name()+"/schedstat"))
		if err != nil {
			continue // the thread has ended
		}
		fields := bytes.Fields(raw)
		if len(fields) < 2 {
			return 0, false
		}
		ran, err := strconv.ParseInt(string(fields[0]), 10, 64)
		waited, err2 := strconv.ParseInt(string(fields[1]), 10, 64)
		if err != nil || err2 != nil {
			return 0, false
		}
		most, known = max(most, ran+waited), true
	}
	return most, known
}
