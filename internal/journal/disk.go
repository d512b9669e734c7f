package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Disk is where journals lie. It is an interface, so that a simulation can lose
// what was not synced.
type Disk interface {
	// Create makes a new file; an existing one is fs.ErrExist.
	Create(name string) (File, error)
	// Extend opens a file at its first size bytes, dropping the rest.
	Extend(name string, size int64) (File, error)
	// Open opens a file for reading; a missing one is fs.ErrNotExist.
	Open(name string) (io.ReadCloser, error)
	// Names lists the files, sorted. A folder that does not exist is empty.
	Names() ([]string, error)
	// Remove deletes a file.
	Remove(name string) error
}

// File is a journal that is open for writing.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// suffix is that of a journal's file.
const suffix = ".jsonl"

// Dir is a folder on a real disk; it is made with the first file.
type Dir string

// Create makes a new file and makes its name durable.
func (d Dir) Create(name string) (File, error) { //nolint:ireturn // as Disk wants it
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(string(d), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return f, d.sync()
}

// sync makes the names in the folder durable.
func (d Dir) sync() error {
	folder, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !unsupported(err) {
		return err
	}
	return nil
}

// Extend cuts a file to its first size bytes and opens it at their end.
func (d Dir) Extend(name string, size int64) (File, error) { //nolint:ireturn // as Disk wants it
	path := filepath.Join(string(d), name)
	if err := os.Truncate(path, size); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
}

// Open opens a file for reading. Only a regular one is opened: a pipe would never
// answer.
func (d Dir) Open(name string) (io.ReadCloser, error) {
	path := filepath.Join(string(d), name)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	return os.Open(path)
}

// Names lists the journals in the folder.
func (d Dir) Names() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove deletes a file.
func (d Dir) Remove(name string) error { return os.Remove(filepath.Join(string(d), name)) }
