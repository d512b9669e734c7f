package store

import (
	"slices"

	"golang.org/x/sys/unix"
)

// networkFileSystem names the network file system of a folder; "" = none, or not known.
func networkFileSystem(dir string) string {
	var info unix.Statfs_t
	if err := unix.Statfs(dir, &info); err != nil {
		return "" // opening the file will fail with the reason
	}
	name := unix.ByteSliceToString(info.Fstypename[:])
	if slices.Contains([]string{"nfs", "smbfs", "afpfs", "webdav", "ftp", "macfuse", "osxfuse", "fusefs"}, name) {
		return name
	}
	return ""
}
