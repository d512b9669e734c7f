//go:build unix

package plain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Descriptor opens a regular file, with the flags of os.OpenFile and close-on-exec. Errors are
// fs.PathError: ErrNotPlain, or the system's.
func Descriptor(path string, flags int, perm fs.FileMode) (int, error) {
	fd, _, err := openDescriptor(path, flags, perm)
	return fd, err
}

func openDescriptor(path string, flags int, perm fs.FileMode) (int, syscall.Stat_t, error) {
	var st syscall.Stat_t
	flags |= syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
	fd := -1
	err := RetryInterrupted(func() (err error) {
		fd, err = syscall.Open(path, flags, uint32(perm.Perm()))
		return err
	})
	switch {
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENXIO):
		err = ErrNotPlain
	case err == nil:
		if err = RetryInterrupted(func() error { return syscall.Fstat(fd, &st) }); err == nil && st.Mode&syscall.S_IFMT != syscall.S_IFREG {
			err = ErrNotPlain
		}
		if err != nil {
			_ = syscall.Close(fd) // it was not used
		}
	}
	if err != nil {
		return -1, st, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, st, nil
}

// Open is Descriptor as a file.
func Open(path string, flags int, perm fs.FileMode) (*os.File, error) {
	fd, err := Descriptor(path, flags, perm)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Read reads a whole file of at most limit bytes. Errors are fs.PathError:
// ErrNotPlain, ErrTooLong, or the system's.
func Read(path string, limit int64) ([]byte, error) {
	fd, st, err := openDescriptor(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }() // read only
	if st.Size > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: %d bytes", ErrTooLong, st.Size)}
	}
	buf := make([]byte, 0, st.Size+1) // with the extra byte, the next read finds the end
	for {
		n := 0
		err := RetryInterrupted(func() (err error) {
			n, err = syscall.Read(fd, buf[len(buf):cap(buf)])
			return err
		})
		switch {
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return buf, nil
		}
		if buf = buf[:len(buf)+n]; int64(len(buf)) > limit {
			return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLong}
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// RetryInterrupted repeats a system call that a signal interrupted.
func RetryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
