//go:build !linux

package cgroup

import "time"

// KilledForMemory finds nothing: only Linux has this log.
func KilledForMemory(int, time.Duration) (line string, found bool) { return "", false }
