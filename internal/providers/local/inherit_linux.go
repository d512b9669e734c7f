package local

import (
	"math"

	"golang.org/x/sys/unix"
)

// closeOnExecFrom sets close-on-exec on all descriptors from first on (Linux 5.11).
func closeOnExecFrom(first uint) error {
	return unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
