package identity

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// smallFile is the buffer size for files of one short record: the longest, stat, is below 700
// bytes with the widest numbers.
const smallFile = 1024

func (p Proc) procPath(pid int, name string) string {
	root := p.Root
	if root == "" {
		root = "/proc"
	}
	return root + "/" + strconv.Itoa(pid) + "/" + name
}

// readSmall reads a short file in one call, without an os.File: the watchdog reads the whole
// table ten times a second.
func readSmall(path string, room []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, asErrDead(&os.PathError{Op: "open", Path: path, Err: err})
	}
	n, err := unix.Read(fd, room)
	_ = unix.Close(fd)
	if err != nil {
		return nil, asErrDead(&os.PathError{Op: "read", Path: path, Err: err})
	}
	return room[:n], nil
}

// asErrDead turns the two errors of procfs for "no such process" into ErrDead.
func asErrDead(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return ErrDead
	}
	return err
}

// Stat reads one process. Errors: ErrDead when there is none (or the mount hides it).
func (p Proc) Stat(pid int) (Stat, error) {
	var room [smallFile]byte
	text, err := readSmall(p.procPath(pid, "stat"), room[:])
	if err != nil {
		return Stat{}, err
	}
	return parseStat(text, int64(unix.Getpagesize()))
}

func (p Proc) listPIDs() ([]int, error) {
	root := p.Root
	if root == "" {
		root = "/proc"
	}
	return listNumbers(root)
}

// readLines calls more for each line of a file until it returns false. Lines beyond 4 KiB are
// skipped.
func readLines(path string, more func(line []byte) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return asErrDead(err)
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
			return asErrDead(err)
		}
	}
}

func (p Proc) hasEntry(pid int, entry string) bool {
	f, err := os.Open(p.procPath(pid, "environ"))
	if err != nil {
		return false
	}
	defer f.Close()
	m := entryMatcher{want: entry}
	var piece [4096]byte
	for !m.found {
		n, err := f.Read(piece[:])
		m.matchPiece(piece[:n])
		if err != nil {
			if errors.Is(err, io.EOF) {
				m.endEntry()
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
	var d dispositions
	err := readLines(p.procPath(pid, "status"), func(line []byte) bool { d.parseLine(line); return true })
	return err == nil && d.ignoresTerm(), err
}

// IOOperations counts the read and write calls of the process since its start, with its
// threads and without its children; false when that is unknown (another user's process, or
// not Linux). Traffic by send and recv is not included.
func (p Proc) IOOperations(pid int) (int64, bool) {
	var room [smallFile]byte
	text, err := readSmall(p.procPath(pid, "io"), room[:])
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

// BusiestThread is the living thread of a process that has wanted most processor time since
// its start; false when that is unknown (a kernel without accounting).
func (p Proc) BusiestThread(pid int) (Thread, bool) {
	threads, err := os.ReadDir(p.procPath(pid, "task"))
	if err != nil {
		return Thread{}, false
	}
	var busiest Thread
	var dir string
	for _, entry := range threads {
		at := "task/" + entry.Name() + "/"
		raw, err := os.ReadFile(p.procPath(pid, at+"schedstat"))
		if err != nil {
			continue // the thread has ended
		}
		wanted, known := wantedTime(raw)
		if !known {
			return Thread{}, false
		}
		if dir == "" || wanted > busiest.Wanted {
			busiest.Wanted, dir = wanted, at
			busiest.TID, _ = strconv.Atoi(entry.Name())
		}
	}
	if dir == "" {
		return Thread{}, false
	}
	if raw, err := os.ReadFile(p.procPath(pid, dir+"status")); err == nil {
		busiest.Runnable, busiest.Sleeps = threadStatus(raw)
	}
	return busiest, true
}

// wantedTime reads a schedstat: the time on a processor and the time in which the thread was
// ready to run, in nanoseconds.
func wantedTime(schedstat []byte) (time.Duration, bool) {
	fields := bytes.Fields(schedstat)
	if len(fields) < 2 {
		return 0, false
	}
	ran, err := strconv.ParseInt(string(fields[0]), 10, 64)
	waited, err2 := strconv.ParseInt(string(fields[1]), 10, 64)
	return time.Duration(ran + waited), err == nil && err2 == nil
}

// threadStatus reads whether a thread runs or is ready to run, and how often it has gone to
// sleep; nil = not reported.
func threadStatus(status []byte) (runnable bool, sleeps *int64) {
	for line := range bytes.Lines(status) {
		key, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch string(key) {
		case "State":
			runnable = bytes.HasPrefix(value, []byte("R"))
		case "voluntary_ctxt_switches":
			if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
				sleeps = &n
			}
		}
	}
	return runnable, sleeps
}

// listNumbers lists the entries of a directory that are numbers: processes, threads,
// descriptors. A watchdog calls it dozens of times a second, so it allocates only the list.
func listNumbers(dir string) ([]int, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var list []int
	var room [4096]byte
	for {
		n, err := unix.Getdents(fd, room[:])
		if err != nil {
			return nil, &os.PathError{Op: "readdirent", Path: dir, Err: err}
		}
		if n == 0 {
			return list, nil
		}
		list = appendNumbers(list, room[:n])
	}
}

// The parts of struct linux_dirent64 (getdents(2)): the length of the entry is
// in bytes 16 and 17, the name begins at byte 19 and ends with a NUL.
const (
	entryLength = 16
	entryName   = 19
)

func appendNumbers(list []int, entries []byte) []int {
	for len(entries) > entryName {
		length := int(binary.NativeEndian.Uint16(entries[entryLength:]))
		if length <= entryName || length > len(entries) {
			break
		}
		if n, ok := parseNumber(entries[entryName:length]); ok {
			list = append(list, n)
		}
		entries = entries[length:]
	}
	return list
}

// maxDigits is enough for any PID.
const maxDigits = 10

// parseNumber reads a name up to its NUL; false unless it consists of at most maxDigits digits.
func parseNumber(name []byte) (n int, ok bool) {
	for i, c := range name {
		switch {
		case c == 0:
			return n, i > 0
		case c < '0' || c > '9' || i == maxDigits:
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return 0, false
}

// Offspring is Descendants by the kernel's lists of children, at the cost of the tree instead
// of the machine. A list that is read while a child ends may lack one of its siblings: enough
// for a check that is repeated, no proof that no process is left. Without such lists it is
// Descendants.
func (p Proc) Offspring(pid int) ([]Stat, error) {
	if _, err := os.Lstat(p.procPath(pid, "task/"+strconv.Itoa(pid)+"/children")); err != nil {
		return p.Descendants(pid) // a kernel without lists, or no such process
	}
	var found []Stat
	seen := map[int]bool{pid: true}
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		for _, child := range p.childPIDs(queue[0]) {
			if seen[child] {
				continue
			}
			seen[child] = true
			if s, err := p.Stat(child); err == nil {
				found = append(found, s)
				queue = append(queue, child)
			}
		}
	}
	return found, nil
}

// childPIDs is empty for a process that has ended, and lacks the children of a thread that
// has: they have another parent.
func (p Proc) childPIDs(pid int) []int {
	threads, err := listNumbers(p.procPath(pid, "task"))
	if err != nil {
		return nil
	}
	var list []int
	for _, tid := range threads {
		list = appendChildren(list, p.procPath(pid, "task/"+strconv.Itoa(tid)+"/children"))
	}
	return list
}

func appendChildren(list []int, path string) []int {
	var room [4096]byte
	text, err := readSmall(path, room[:])
	if err != nil {
		return list
	}
	if len(text) < len(room) {
		return appendWords(list, text)
	}
	whole, err := os.ReadFile(path) // there may be more
	if err != nil {
		return list
	}
	return appendWords(list, whole)
}

// appendWords parses numbers separated by blanks.
func appendWords(list []int, text []byte) []int {
	n, digits := 0, 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9' && digits < maxDigits:
			n, digits = 10*n+int(c-'0'), digits+1
		case digits > 0:
			list = append(list, n)
			n, digits = 0, 0
		}
	}
	if digits > 0 {
		list = append(list, n)
	}
	return list
}

// sinceBoot is the time since the machine was booted, sleep included.
func sinceBoot() (time.Duration, bool) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, false
	}
	return time.Duration(now.Nano()), true
}

func pidNamespace() (uint64, error) {
	const file = "/proc/self/ns/pid"
	var st unix.Stat_t
	if err := retryInterrupted(func() error { return unix.Stat(file, &st) }); err != nil {
		return 0, &os.PathError{Op: "stat", Path: file, Err: err}
	}
	return st.Ino, nil
}
