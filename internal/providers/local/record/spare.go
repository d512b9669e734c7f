package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sbx/internal/providers/local/plain"
)

// On a full disk no file can be made, and an end that was asked for would look like a
// supervisor that was lost. The lock's file has a block of its own from the start, of
// which the holder's signature fills the beginning; the request goes behind it.
const (
	spareOffset = 1 << 10
	spareBytes  = 1 << 10
)

// noRoom says that a write failed for want of room.
func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// spareStop writes the request into the lock's file, whose time stays as it is (SetDue).
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

// signature is what the holder wrote into a lock's file.
func signature(raw []byte) []byte {
	before, _, _ := bytes.Cut(raw, []byte{0})
	return before
}
