package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// tree is the file operations that groups need: of the real file system, or of a model of the
// kernel in tests.
type tree interface {
	makeGroupDir(dir string) error
	removeGroupDir(dir string) error
	readText(file string) (string, error)
	writeFile(file, value string) error
	inodeOfDir(dir string) (uint64, error)
	childDirs(dir string) ([]string, error) // the names of its directories
}

// rights checks what this process may do, without doing it.
type rights interface {
	checkWritable(file string) error
	isDelegated(dir string) bool // the directory was given to this user to manage
}

// disk is the cgroup file system of the running kernel.
type disk struct{}

// makeGroupDir makes a group that other users may list, like the kernel's own groups.
func (disk) makeGroupDir(dir string) error {
	return os.Mkdir(dir, 0o755) //nolint:gosec // counters of a group are no secret, and ls of another user shows them
}

// removeGroupDir is not os.Remove, which would unlink a file of that name.
func (disk) removeGroupDir(dir string) error { return syscall.Rmdir(dir) }

func (disk) readText(file string) (string, error) {
	text, err := os.ReadFile(file)
	return string(text), err
}

// writeFile sends the value in one call: the kernel parses a cgroup file per write. It never
// creates a file.
func (disk) writeFile(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

func (disk) inodeOfDir(dir string) (uint64, error) { return inodeOf(dir) }

func (disk) childDirs(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// noSuchGroup reports whether an error means that the group does not exist (anymore): the path is
// missing, or the file was open when the group was removed.
func noSuchGroup(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

func fileExists(t tree, file string) bool {
	_, err := t.inodeOfDir(file)
	return err == nil
}
