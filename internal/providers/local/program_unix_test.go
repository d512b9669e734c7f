//go:build unix && !linux

package local_test

// blocked exists on Linux alone.
func blocked() int { return 2 }
