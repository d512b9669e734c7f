package config

import (
	"errors"
	"os"
	"path/filepath"
)

// Files and folders of sbx are the operator's alone: they may hold secrets.
const (
	modeFile   = 0o600
	modeFolder = 0o700
)

// writeWhole replaces a file so that a reader and a crash see the old or the
// new content, never a part: write, fsync, rename, fsync of the folder.
func writeWhole(path string, content []byte) error { return writeAs(path, content, modeFile) }

// writeAs is writeWhole for a file of this mode.
func writeAs(path string, content []byte, mode os.FileMode) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, modeFolder); err != nil {
		return err
	}
	draft, err := os.CreateTemp(folder, "."+filepath.Base(path)+"-*") // created with 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name()) //nolint:errcheck // after the rename it is gone already
	_, err = draft.Write(content)
	if err := errors.Join(err, draft.Chmod(mode), draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		return err
	}
	syncFolder(folder)
	return nil
}

// writeNew makes a file that must not be there yet.
func writeNew(path string, content []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, modeFolder); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, modeFile)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	syncFolder(folder)
	return nil
}

// syncFolder makes a new name durable where the system can; Windows cannot.
func syncFolder(folder string) {
	if f, err := os.Open(folder); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}
