//go:build !unix

package plain

import (
	"io"
	"io/fs"
	"os"
)

// Open opens a regular file, with the flags of os.OpenFile. Errors are
// fs.PathError: ErrNotPlain, or the system's.
func Open(path string, flags int, perm fs.FileMode) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotPlain}
	}
	return os.OpenFile(path, flags, perm)
}

// Read reads a whole file of at most limit bytes. Errors are fs.PathError:
// ErrNotPlain, ErrTooLong, or the system's.
func Read(path string, limit int64) ([]byte, error) {
	file, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(raw)) > limit {
		return nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLong}
	}
	return raw, err
}
