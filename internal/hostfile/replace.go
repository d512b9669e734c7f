package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file so that a reader, and a crash at any moment, see the old content
// or the new, never a part: temporary file in the same folder, fsync, rename, fsync of the
// folder. The name of the temporary file starts with a dot and ends with ".tmp". The umask
// does not change perm.
func Replace(path string, content []byte, perm fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp")
	if err != nil {
		return err
	}
	if err = errors.Join(writeAndSync(temp, content, perm), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// Create writes a file that does not exist yet and makes it durable. Errors: fs.ErrExist,
// and those of the file system.
func Create(path string, content []byte, perm fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	if err := errors.Join(writeAndSync(file, content, perm), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return syncFolder(filepath.Dir(path))
}

func writeAndSync(file *os.File, content []byte, perm fs.FileMode) error {
	if _, err := file.Write(content); err != nil {
		return err
	}
	if err := file.Chmod(perm); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder makes a new name durable, where the system can open and sync a folder
// (Windows and some network file systems cannot).
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return nil // a folder that may be written but not read is no failure of the write
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, os.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
