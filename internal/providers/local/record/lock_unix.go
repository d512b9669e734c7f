//go:build unix

package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/plain"
)

// The lock is an flock on a separate file. The kernel releases it with the last descriptor,
// however the holder died, so a held lock means that a supervisor, or the sbx that is starting
// one, is alive, without any comparison of PIDs.

func (s Store) lockNew(id string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(s.Dir(id), lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := plain.RetryInterrupted(func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX) }); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Held reports whether a live process holds the sandbox's lock. The shared probe does not
// disturb other probes. Something else in the lock's place is no evidence: ErrGarbage.
func (s Store) Held(id string) (bool, error) {
	fd, err := plain.Descriptor(filepath.Join(s.Dir(id), lockFile), os.O_RDONLY, 0) // cheaper than an os.File
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, asGarbage(err)
	}
	defer unix.Close(fd)
	err = plain.RetryInterrupted(func() error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// TryLock takes the lock of a sandbox whose supervisor is dead; false when another process
// holds it. Anything else in the lock's place is replaced.
func (s Store) TryLock(id string) (*os.File, bool, error) {
	return tryLock(filepath.Join(s.Dir(id), lockFile))
}

// TryLockEdit takes the lock of an edit of a sandbox's labels or its end; false when another process holds it.
func (s Store) TryLockEdit(id string) (*os.File, bool, error) {
	return tryLock(filepath.Join(s.Dir(id), editLock))
}

func tryLock(path string) (*os.File, bool, error) {
	file, err := plain.Open(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, plain.ErrNotPlain) {
		if err = os.Remove(path); err == nil { // of a link, the target stays
			file, err = plain.Open(path, os.O_CREATE|os.O_RDWR, 0o600)
		}
	}
	if err != nil {
		return nil, false, err
	}
	err = plain.RetryInterrupted(func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		return nil, false, errors.Join(ignoreError(err, unix.EWOULDBLOCK), file.Close())
	}
	return file, true, nil
}

// SignLock writes the holder into the lock, so that a supervisor can be found although its
// record is unreadable.
func SignLock(lock *os.File, holder identity.Process) error {
	raw, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err = lock.WriteAt(raw, 0)
	return err
}

// Holder reads the holder from the lock; false without a signature.
func (s Store) Holder(id string) (identity.Process, bool) {
	var p identity.Process
	raw, err := plain.Read(filepath.Join(s.Dir(id), lockFile), MaxBytes)
	signature, _, _ := bytes.Cut(raw, []byte{0})
	if err != nil || json.Unmarshal(signature, &p) != nil || p.PID <= 0 {
		return identity.Process{}, false
	}
	return p, true
}

// HoldExec marks that a command of a client runs in the sandbox, until the file is closed or
// its process dies. Several may hold it.
func (s Store) HoldExec(id string) (*os.File, error) {
	path := filepath.Join(s.Dir(id), execFile)
	file, err := plain.Open(path, os.O_RDONLY, 0) // works on a read-only file system
	if errors.Is(err, fs.ErrNotExist) {
		file, err = plain.Open(path, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := plain.RetryInterrupted(func() error { return unix.Flock(int(file.Fd()), unix.LOCK_SH) }); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ExecHeld reports whether such a command runs.
func (s Store) ExecHeld(id string) (bool, error) {
	fd, err := plain.Descriptor(filepath.Join(s.Dir(id), execFile), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, asGarbage(err)
	}
	defer unix.Close(fd)
	err = plain.RetryInterrupted(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	return errors.Is(err, unix.EWOULDBLOCK), ignoreError(err, unix.EWOULDBLOCK)
}
