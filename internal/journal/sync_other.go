//go:build !unix

package journal

// A folder cannot be synced on this platform.
func unsupported(error) bool { return true }
