//go:build unix

package journal

import (
	"errors"
	"syscall"
)

// unsupported says that a file system cannot sync a folder, and so keeps names
// some other way.
func unsupported(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}
