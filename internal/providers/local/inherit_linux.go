package local

import (
	"math"

	"golang.org/x/sys/unix"
)

// closeOnExecFrom marks all descriptors from the given one on at once, which
// Linux can since 5.11.
func closeOnExecFrom(first uint) error {
	return unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
