//go:build !linux

package identity

import "time"

// sinceBoot is not known: start times are not counted from there.
func sinceBoot() (time.Duration, bool) { return 0, false }
