//go:build !unix

package journal

// A folder cannot be synced on this platform.
func isUnsupported(error) bool { return true }
