//go:build !linux

package cgroup

import "time"

// KilledForMemory finds nothing: only Linux has such a log.
func KilledForMemory(int, time.Duration) (line string, found bool) { return "", false }
