//go:build !unix

package journal

// unsupported: a folder cannot be synced here at all.
func unsupported(error) bool { return true }
