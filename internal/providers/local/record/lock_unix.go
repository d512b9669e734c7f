//go:build unix

package record

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sbx/internal/providers/local/identity"
	"sbx/internal/providers/local/plain"
)

// The lock is an flock on a file of its own. The kernel drops it with the last
// descriptor, whatever way the holder died, so "held" means "a supervisor, or
// the sbx that is just starting one, lives": no PID can be mistaken for it.

func (s Store) lockNew(id string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(s.Dir(id), lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := retryEINTR(func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX) }); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Held says whether a live process holds the sandbox's lock. A shared probe
// does not disturb other probes. What stands in a lock's place and is none says
// nothing about its holder: ErrGarbage.
func (s Store) Held(id string) (bool, error) {
	fd, err := plain.Descriptor(filepath.Join(s.Dir(id), lockFile), os.O_RDONLY, 0) // no os.File: half of its calls serve readers
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, garbage(err)
	}
	defer unix.Close(fd)
	err = retryEINTR(func() error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// TryLock takes the lock of a sandbox whose supervisor is dead; false when
// somebody holds it. What stands in a lock's place and is none gives way.
func (s Store) TryLock(id string) (*os.File, bool, error) {
	path := filepath.Join(s.Dir(id), lockFile)
	file, err := plain.Open(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, plain.ErrNotPlain) {
		if err = os.Remove(path); err == nil { // a link goes, what it leads to stays
			file, err = plain.Open(path, os.O_CREATE|os.O_RDWR, 0o600)
		}
	}
	if err != nil {
		return nil, false, err
	}
	err = retryEINTR(func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err != nil {
		return nil, false, errors.Join(ignore(err, unix.EWOULDBLOCK), file.Close())
	}
	return file, true, nil
}

// SignLock writes into the lock who holds it, so that a supervisor can be found
// although its record is garbage.
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

// Holder reads who signed the lock; false when nobody did.
func (s Store) Holder(id string) (identity.Process, bool) {
	var p identity.Process
	raw, err := plain.Read(filepath.Join(s.Dir(id), lockFile), MaxBytes)
	if err != nil || json.Unmarshal(signature(raw), &p) != nil || p.PID <= 0 {
		return identity.Process{}, false
	}
	return p, true
}

// HoldExec marks that a command runs in the sandbox for a client of its own, until
// the file is closed or its process dies. Many may hold it.
func (s Store) HoldExec(id string) (*os.File, error) {
	path := filepath.Join(s.Dir(id), execFile)
	file, err := plain.Open(path, os.O_RDONLY, 0) // which a read-only file system permits
	if errors.Is(err, fs.ErrNotExist) {
		file, err = plain.Open(path, os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if err := retryEINTR(func() error { return unix.Flock(int(file.Fd()), unix.LOCK_SH) }); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ExecHeld says whether such a command runs.
func (s Store) ExecHeld(id string) (bool, error) {
	fd, err := plain.Descriptor(filepath.Join(s.Dir(id), execFile), os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, garbage(err)
	}
	defer unix.Close(fd)
	err = retryEINTR(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	return errors.Is(err, unix.EWOULDBLOCK), ignore(err, unix.EWOULDBLOCK)
}

func retryEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
