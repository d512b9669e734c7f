package hostfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sbx/internal/fault"
)

// UnsafeError is a path that another user of this machine controls.
type UnsafeError struct {
	Path   string // of what is wrong: the path that was asked about or a directory above it
	Reason string // "is owned by uid 1000 (bob), not by uid 0 (root)"
	Mend   string // the command that mends it: "chmod go-w /srv"
}

// Error is "PATH REASON".
func (e *UnsafeError) Error() string { return e.Path + " " + e.Reason }

// CheckControl returns an UnsafeError where another user can replace or change
// the file or directory at path. Path and every directory above it, links on the
// way included, must belong to the effective user or to root, and neither group
// nor others may write to them; others may write to a directory with the sticky
// bit, such as /tmp, because each entry there stays its owner's. Write permission of a
// group that its owner or the effective user has to itself is no danger (the umask 002 of many
// Linux systems, the fsGroup of Kubernetes).
//
// What does not exist is judged by the directories above it. Where the system
// has no such owners and modes, everything is accepted.
func CheckControl(path string) error { return thisUser().checkPath(path) }

// CheckDirectory is CheckControl of a directory and of each entry directly in
// it: an entry that another user left there when the directory was open to
// everybody stays theirs after the directory is not. One that does not exist has
// no entries.
func CheckDirectory(dir string) error {
	u := thisUser()
	if err := u.checkPath(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil //nolint:nilerr // it does not exist, is no directory or cannot be read: whoever uses it says so
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil {
			return err
		}
		if err := u.checkEntry(filepath.Join(dir, entry.Name()), info); err != nil {
			return err
		}
	}
	return nil
}

// ForeignHome reports whether this is root in the home of another user, as under sudo without
// -H, and returns that user. The home that passwd names for root counts as root's, even where
// another user owns the folder.
func ForeignHome(home, passwd string) (owner string, foreign bool) {
	if home == passwd {
		return "", false
	}
	return thisUser().foreignHome(home)
}

// Refused is the fault of a path that another user controls, or that could not
// be judged. What says what the path is for, instead what to do where it cannot be
// mended.
func Refused(what, path string, err error, instead string) error {
	unsafe, ok := errors.AsType[*UnsafeError](err)
	if !ok {
		return fault.New(fault.KindRefused, "%s is not used: %w", what, err).WithHint("%s", instead)
	}
	if unsafe.Path != path {
		what += " " + path
	}
	return fault.New(fault.KindRefused, "%s is not used: %w", what, err).WithHint("`%s` corrects it; or %s", unsafe.Mend, instead)
}

// user is the user who may control paths, beside root.
type user struct {
	uid int
	// private says that the group of that number has no other member than the user of that
	// number.
	private func(gid int) bool
}

// maxLinks ends a circle of links.
const maxLinks = 40

// checkPath walks from the root to path as the kernel does, following links, and
// judges each component.
func (u user) checkPath(path string) error {
	dir := filepath.VolumeName(path) + string(filepath.Separator)
	rest := splitPath(path)
	links := 0
	if err := u.checkComponent(dir); err != nil {
		return err
	}
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			dir = filepath.Dir(dir)
			continue
		}
		next := filepath.Join(dir, part)
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return nil //nolint:nilerr // a directory that cannot be searched: opening the path says so
		}
		if err := u.checkEntry(next, info); err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			dir = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return err
		}
		if links++; links > maxLinks {
			return fmt.Errorf("%s: too many links", path)
		}
		if filepath.IsAbs(target) {
			dir = filepath.VolumeName(target) + string(filepath.Separator)
		}
		rest = append(splitPath(target), rest...)
	}
	return nil
}

func (u user) checkComponent(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // opening the path says so
	}
	return u.checkEntry(path, info)
}
