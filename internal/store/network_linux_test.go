package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestNetworkMagic(t *testing.T) {
	t.Parallel()
	for magic, want := range map[uint32]string{
		unix.NFS_SUPER_MAGIC: "nfs", unix.CIFS_SUPER_MAGIC: "smb", unix.SMB2_SUPER_MAGIC: "smb", unix.SMB_SUPER_MAGIC: "smb",
		unix.V9FS_MAGIC: "9p", unix.AFS_SUPER_MAGIC: "afs", unix.CEPH_SUPER_MAGIC: "ceph", unix.CODA_SUPER_MAGIC: "coda",
		unix.EXT4_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.BTRFS_SUPER_MAGIC: "", unix.XFS_SUPER_MAGIC: "", unix.OVERLAYFS_SUPER_MAGIC: "",
	} {
		assert.Equal(t, want, networkMagic(magic), "%#x", magic)
	}
}

const mountinfo = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
40 22 0:35 / /home/me rw,nosuid - fuse.sshfs me@host:/home rw
41 40 0:36 / /home/me/local rw - fuse.fuse-overlayfs overlay rw
42 22 8:1 / /mnt/with\040space rw - fuse.rclone remote: rw
43 22 8:2 / /mnt/disk rw - fuseblk /dev/sdb1 rw
44 22 0:50 / /home/me rw - fuse.s3fs over rw
broken line
45 22 - x
`

func TestNetworkFUSE(t *testing.T) {
	t.Parallel()
	for dir, want := range map[string]string{
		"/home/me/.local/state/sbx": "fuse.s3fs", "/home/me": "fuse.s3fs", // the innermost mount counts
		"/home/me/local/sbx": "", "/home/menu": "", "/mnt/with space/x": "fuse.rclone", "/mnt/disk/x": "", "/": "",
	} {
		assert.Equal(t, want, networkFUSE([]byte(mountinfo), dir), dir)
	}
	assert.Empty(t, networkFUSE(nil, "/x"))
}
