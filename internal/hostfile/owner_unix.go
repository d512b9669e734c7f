//go:build unix

package hostfile

import (
	"fmt"
	"io/fs"
	"os"
	osuser "os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// The bits that let a group and others write.
const (
	groupWrites fs.FileMode = 0o020
	othersWrite fs.FileMode = 0o002
)

const maxGroupFile = 4 << 20

func thisUser() user { return user{uid: os.Geteuid(), private: privateGroup} }

// checkEntry judges one file, directory or link. A device stays what it is whoever
// opens it.
func (u user) checkEntry(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if mode&fs.ModeDevice != 0 {
		return nil
	}
	st, err := u.checkFoundOwner(path, info)
	if err != nil {
		return err
	}
	switch {
	case mode&fs.ModeSymlink != 0: // its mode means nothing
		return nil
	case mode.IsDir() && mode&fs.ModeSticky != 0:
		return nil
	case mode&othersWrite != 0:
		return &UnsafeError{Path: path, Reason: fmt.Sprintf("can be written by every user (mode %04o)", mode.Perm()), Mend: "chmod go-w " + path}
	case mode&groupWrites != 0 && !u.ownGroup(st):
		return &UnsafeError{Path: path, Reason: fmt.Sprintf("can be written by group %d (mode %04o)", st.Gid, mode.Perm()), Mend: "chmod g-w " + path}
	}
	return nil
}

// ownGroup says that only who may control the entry anyway is in its group: the group is that
// of its owner, or that of this user, as Kubernetes makes the volume of a pod with fsGroup.
func (u user) ownGroup(st *syscall.Stat_t) bool {
	return (st.Gid == st.Uid || int(st.Gid) == u.uid) && u.private(int(st.Gid))
}

func (u user) foreignHome(home string) (owner string, foreign bool) {
	info, err := os.Stat(home)
	if err != nil || u.uid != 0 {
		return "", false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 {
		return "", false
	}
	return userName(int(st.Uid)), true
}

func (u user) checkFoundOwner(path string, info fs.FileInfo) (*syscall.Stat_t, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, fmt.Errorf("%s: its owner is unknown", path)
	}
	if owner := int(st.Uid); owner != 0 && owner != u.uid {
		return nil, &UnsafeError{
			Path: path, Reason: fmt.Sprintf("is owned by %s, not by %s", userName(owner), userName(u.uid)),
			Mend: fmt.Sprintf("chown %d %s", u.uid, path),
		}
	}
	return st, nil
}

// userName is how messages name a user: "uid 1000 (bob)".
func userName(uid int) string {
	text := "uid " + strconv.Itoa(uid)
	if known, err := osuser.LookupId(strconv.Itoa(uid)); err == nil {
		text += " (" + known.Username + ")"
	}
	return text
}

func splitPath(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(part string) bool { return part == "" || part == "." })
}

// privateGroup says that the local group of that number lists no members but
// the user that it is named after, and root. A group that is not listed may have
// any member.
func privateGroup(gid int) bool {
	text, err := readBounded("/etc/group", maxGroupFile)
	return err == nil && privateIn(string(text), gid)
}

func privateIn(groups string, gid int) bool {
	for line := range strings.Lines(groups) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 4 || fields[2] != strconv.Itoa(gid) {
			continue
		}
		return !slices.ContainsFunc(strings.Split(fields[3], ","), func(member string) bool {
			return member != "" && member != fields[0] && member != "root"
		})
	}
	return false
}
