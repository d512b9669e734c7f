package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"sbx/internal/providers/local/plain"
)

// On a full disk no file can be made, and a requested end would look like a lost supervisor.
// The lock file has a block from the start, of which the holder's signature fills the
// beginning; the stop request is written after it.
const (
	spareOffset = 1 << 10
	spareBytes  = 1 << 10
)

// IsDiskFull reports whether a write failed for lack of space.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// spareStop writes the request into the lock file and keeps its modification time (SetDue).
func (s Store) spareStop(id string, raw []byte) error {
	due, unfinished := s.Due(id)
	if !unfinished || len(raw) > spareBytes {
		return syscall.ENOSPC
	}
	file, err := plain.Open(filepath.Join(s.Dir(id), lockFile), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(raw, spareOffset)
	return errors.Join(err, file.Close(), s.SetDue(id, due))
}

// readSpareStop reads such a request; nil when there is none.
func (s Store) readSpareStop(id string) *Stop {
	raw, err := plain.Read(filepath.Join(s.Dir(id), lockFile), MaxBytes)
	if errors.Is(err, fs.ErrNotExist) || len(raw) <= spareOffset {
		return nil
	}
	var stop Stop
	if json.Unmarshal(bytes.TrimRight(raw[spareOffset:], "\x00"), &stop) != nil {
		return nil
	}
	return &stop
}

// SetDue stores a sandbox's expiry as the modification time of its lock file. It saves a sweep
// of many sandboxes the reading of records, which stay authoritative. It is called by the
// holder of the lock.
func (s Store) SetDue(id string, at time.Time) error {
	return os.Chtimes(filepath.Join(s.Dir(id), lockFile), time.Time{}, at)
}

// Due returns a time before which a sandbox has certainly not expired; false for a finished
// one. Without SetDue it is the time of the lock's signature, which is never too late.
func (s Store) Due(id string) (time.Time, bool) {
	info, err := os.Lstat(filepath.Join(s.Dir(id), lockFile))
	if err != nil {
		return time.Time{}, false
	}
	return info.ModTime(), true
}
