package store

import (
	"slices"

	"golang.org/x/sys/unix"
)

// networkFileSystem names the network file system that a folder is on; "" = none,
// or the kernel does not say.
func networkFileSystem(dir string) string {
	var info unix.Statfs_t
	if err := unix.Statfs(dir, &info); err != nil {
		return "" // opening the file says what is wrong
	}
	name := unix.ByteSliceToString(info.Fstypename[:])
	if slices.Contains([]string{"nfs", "smbfs", "afpfs", "webdav", "ftp", "macfuse", "osxfuse", "fusefs"}, name) {
		return name
	}
	return ""
}
