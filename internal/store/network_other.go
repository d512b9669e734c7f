//go:build !linux && !darwin

package store

import "strings"

// networkFileSystem recognizes a share by its path (\\server\share).
func networkFileSystem(dir string) string {
	if strings.HasPrefix(dir, `\\`) && !strings.HasPrefix(dir, `\\?\`) && !strings.HasPrefix(dir, `\\.\`) {
		return "smb"
	}
	return ""
}
