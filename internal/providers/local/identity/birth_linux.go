package identity

import (
	"os"

	"golang.org/x/sys/unix"
)

// pidNamespace is the inode of this process's PID namespace.
func namespace() (uint64, error) {
	const file = "/proc/self/ns/pid"
	var st unix.Stat_t
	if err := retry(func() error { return unix.Stat(file, &st) }); err != nil {
		return 0, &os.PathError{Op: "stat", Path: file, Err: err}
	}
	return st.Ino, nil
}
