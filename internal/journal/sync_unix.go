//go:build unix

package journal

import (
	"errors"
	"syscall"
)

// isUnsupported reports whether a file system cannot sync a folder, and so keeps names
// durable in some other way.
func isUnsupported(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}
