package identity

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// listNumbers lists the entries of a directory that are numbers: processes, threads,
// descriptors. A watchdog calls it dozens of times a second, so it allocates only the list.
func numbers(dir string) ([]int, error) {
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
		if n, ok := number(entries[entryName:length]); ok {
			list = append(list, n)
		}
		entries = entries[length:]
	}
	return list
}

// maxDigits is enough for any PID.
const maxDigits = 10

// parseNumber reads a name up to its NUL; false unless it consists of at most maxDigits digits.
func number(name []byte) (n int, ok bool) {
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
