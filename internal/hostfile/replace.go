package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sbx/internal/fault"
)

// CheckOutput refuses a path that the operator named for Replace and that is not a file of his: a rename
// would put a file in the place of a device, a pipe or a link. Call it before any work, and before
// Replace again.
func CheckOutput(path string) error {
	if filepath.Base(path) == "-" {
		return fault.Usage("- names no file").WithHint("this output is a file, and never standard output: write a name")
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() { // of a folder Replace itself says so
		return fault.Usage("%s is no regular file, and is not replaced", path).WithHint("name a file, or what a link points to")
	}
	return nil
}

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
	syncFolder(filepath.Dir(path))
	return nil
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
	syncFolder(filepath.Dir(path))
	return nil
}

func writeAndSync(file *os.File, content []byte, perm fs.FileMode) error {
	if _, err := file.Write(content); err != nil {
		return err
	}
	if err := setMode(file, perm); err != nil {
		return err
	}
	return file.Sync()
}

// setMode asks for a change only where one is needed: some mounts refuse every chmod.
func setMode(file *os.File, perm fs.FileMode) error {
	info, err := file.Stat()
	if err != nil || info.Mode().Perm() == perm {
		return err
	}
	return file.Chmod(perm)
}

// syncFolder makes a new name durable, where the system can. The file has its content by then,
// so a failure, such as EINVAL of some network file systems, does not say that it was not written.
func syncFolder(folder string) {
	if f, err := os.Open(folder); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}
