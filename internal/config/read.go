package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sbx/internal/fault"
	"sbx/internal/hostfile"
)

// maxFile bounds a configuration file, in bytes: a larger one is something else.
const maxFile = 1 << 20

const hintFile = "correct the file, or read another instead of it with --config FILE"

// readContent gives a file's content; nil without an error where a user file is not
// there. Only an explicit file may be a pipe or a device: the operator has named
// it. When ctx ends, the error is its cause.
func (f File) readContent(ctx context.Context) ([]byte, error) {
	if f.Role == RoleUser && f.isAbsent() { // one look decides: another process may make it just now
		return nil, nil
	}
	info, err := os.Stat(f.Path)
	switch {
	case err != nil:
		return nil, unreadableFile(f.Path, err)
	case info.IsDir():
		return nil, brokenFile(f.Path, "is a directory, not a file")
	case f.Role != RoleExplicit && !info.Mode().IsRegular():
		return nil, brokenFile(f.Path, "is not a regular file")
	}
	if err := f.checkControl(); err != nil {
		return nil, err
	}
	content, err := hostfile.Read(ctx, f.Path, maxFile)
	switch {
	case err == nil:
		return content, nil
	case ctx.Err() != nil:
		return nil, err
	}
	if _, large := errors.AsType[*hostfile.TooLargeError](err); large {
		return nil, brokenFile(f.Path, "is larger than 1 MiB")
	}
	return nil, unreadableFile(f.Path, err)
}

// isAbsent tells a file that is not there from a link that leads nowhere.
func (f File) isAbsent() bool {
	_, err := os.Lstat(f.Path)
	return errors.Is(err, fs.ErrNotExist)
}

func unreadableFile(path string, err error) error {
	return fault.Usage("%s: cannot be read: %w", path, withoutPath(err)).WithHint(hintFile)
}

// withoutPath takes the path out of an error of the file system, for messages that
// begin with it.
func withoutPath(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

func brokenFile(path, what string) error {
	return fault.Usage("%s: %s", path, what).WithHint(hintFile)
}

// Files and folders of sbx are the operator's alone: they may hold secrets.
const (
	modeFile   = 0o600
	modeFolder = 0o700
)

// writeFile is hostfile.Replace in a folder that may have to be made.
func writeFile(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), modeFolder); err != nil {
		return err
	}
	return hostfile.Replace(path, content, mode)
}

// createFile is hostfile.Create in a folder that may have to be made.
func createFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), modeFolder); err != nil {
		return err
	}
	return hostfile.Create(path, content, modeFile)
}
