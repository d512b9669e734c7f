package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// networkFileSystem names the network file system of a folder; "" = none, or not known.
func networkFileSystem(dir string) string {
	var info unix.Statfs_t
	if err := unix.Statfs(dir, &info); err != nil {
		return "" // opening the file will fail with the reason
	}
	magic := uint32(info.Type)
	if magic != unix.FUSE_SUPER_MAGIC {
		return networkMagic(magic)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return networkFUSE(mounts, dir)
}

func networkMagic(magic uint32) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "smb"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "afs"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.CODA_SUPER_MAGIC:
		return "coda"
	case unix.NCP_SUPER_MAGIC:
		return "ncp"
	case 0x0bd00bd0:
		return "lustre"
	case 0x01161970:
		return "gfs2"
	case 0x7461636f:
		return "ocfs2"
	case 0x47504653:
		return "gpfs"
	}
	return ""
}

// networkFUSE finds the type of a folder's mount in the text of mountinfo, because FUSE has
// one magic number for sshfs and for local disks. Unknown types pass.
func networkFUSE(mounts []byte, dir string) string {
	var point, kind string
	for line := range bytes.Lines(mounts) {
		before, after, ok := strings.Cut(string(line), " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(types) == 0 {
			continue
		}
		at := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])
		inside := at == "/" || dir == at || strings.HasPrefix(dir, at+"/")
		if inside && len(at) >= len(point) {
			point, kind = at, types[0]
		}
	}
	for _, name := range []string{"sshfs", "s3fs", "gcsfuse", "rclone", "glusterfs", "ceph", "davfs", "goofys", "mount-s3", "mountpoint-s3", "curlftpfs", "juicefs", "blobfuse", "nfs", "smb", "cifs", "seaweedfs", "moosefs"} {
		if strings.HasPrefix(kind, "fuse") && strings.Contains(kind, name) {
			return kind
		}
	}
	return ""
}
