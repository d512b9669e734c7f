package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// tree is the handful of file operations that groups need. The real one is the
// disk; tests put a model of the kernel's behaviour behind it.
type tree interface {
	mkdir(dir string) error
	rmdir(dir string) error
	read(file string) (string, error)
	write(file, value string) error
	inode(dir string) (uint64, error)
	children(dir string) ([]string, error) // the names of its directories
}

// rights answers what this process may do, without doing it.
type rights interface {
	writable(file string) error
	delegated(dir string) bool // the directory was given to this user to manage
}

// disk is the tree of the running kernel.
type disk struct{}

// mkdir makes a group that everyone may look into, as the kernel's own are.
func (disk) mkdir(dir string) error {
	return os.Mkdir(dir, 0o755) //nolint:gosec // counters of a group are no secret, and ls of another user shows them
}

// rmdir is not os.Remove, which would unlink a file of that name.
func (disk) rmdir(dir string) error { return syscall.Rmdir(dir) }

func (disk) read(file string) (string, error) {
	text, err := os.ReadFile(file)
	return string(text), err
}

// write sends one value in one call: the kernel takes a cgroup file's content
// per write. It never creates a file.
func (disk) write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func (disk) inode(dir string) (uint64, error) { return inodeOf(dir) }

func (disk) children(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// gone says that an error means "the group does not exist (any more)": the
// path is missing, or the file was open when the group went.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// exists says that a file can be looked at.
func exists(t tree, file string) bool {
	_, err := t.inode(file)
	return err == nil
}
