package identity

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the time since the machine was booted, sleep included.
func sinceBoot() (time.Duration, bool) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, false
	}
	return time.Duration(now.Nano()), true
}
