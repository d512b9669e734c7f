//go:build !linux

package identity

import "time"

// sinceBoot is unknown: start times are not counted from the boot.
func sinceBoot() (time.Duration, bool) { return 0, false }
