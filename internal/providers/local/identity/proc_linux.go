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

// smallFile is room for the files of one short record: the longest, stat, is
// below 700 bytes with every number at its widest.
const smallFile = 1024

func (p Proc) path(pid int, name string) string {
	root := p.Root
	if root == "" {
		root = "/proc"
	}
	return root + "/" + strconv.Itoa(pid) + "/" + name
}

// small reads a short file in one call, without an os.File: the watchdog walks
// the whole table ten times a second.
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

// vanished turns the two ways in which procfs says "no such process" into
// ErrDead.
func vanished(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return ErrDead
	}
	return err
}

func (p Proc) stat(pid int) (Stat, error) {
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

// lines hands on each line of a file until more says no. Lines beyond 4 KiB
// are passed over.
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

func (p Proc) ignoresTerm(pid int) (bool, error) {
	d, err := dispositionsIn(p.path(pid, "status"))
	if err != nil {
		return false, err
	}
	return d.ignoresTerm(), nil
}

func dispositionsIn(path string) (dispositions, error) {
	var d dispositions
	err := lines(path, func(line []byte) bool { d.read(line); return true })
	return d, err
}

func (p Proc) operations(pid int) (int64, bool) {
	var room [smallFile]byte
	text, err := small(p.path(pid, "io"), room[:])
	if err != nil {
		return 0, false
	}
	return parseOperations(text)
}

// parseOperations adds up syscr and syscw of one /proc/PID/io; false unless both
// are there.
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

// busiest adds up the first two figures of each thread's schedstat and takes
// the largest sum.
func (p Proc) busiest(pid int) (int64, bool) {
	threads, err := os.ReadDir(p.path(pid, "task"))
	if err != nil {
		return 0, false
	}
	most, known := int64(0), false
	for _, thread := range threads {
		raw, err := os.ReadFile(p.path(pid, "task/"+thread.Name()+"/schedstat"))
		if err != nil {
			continue // it has ended
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
