// Package lock keeps two runs on one machine from acting at the same time. The
// kernel holds the lock and drops it with the process, so a killed run leaves none.
//
// What the lock is for, and locks across machines, belong elsewhere.
package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"sbx/internal/fault"
	"sbx/internal/providers/local/plain"
)

// retryEvery is the pause between two tries to take a held lock.
const retryEvery = 50 * time.Millisecond

// maxHolder bounds what is read about the holder of a lock, in bytes.
const maxHolder = 64 << 10

// Holder describes who holds a lock, for the error of others.
type Holder struct {
	Run   string    `json:"run"`
	Who   string    `json:"who"`
	Host  string    `json:"host"`
	PID   int       `json:"pid"`
	Since time.Time `json:"since"`
}

// Lock is a lock that is held.
type Lock struct{ file *flock.Flock }

func notTaken(err error) error {
	return fault.New(fault.KindUnknown, "the lock cannot be taken: %w", err).
		WithHint("make the state directory writable for you, or name another with SBX_STATE_DIR")
}

// Take takes the lock at path for h and waits for it up to wait; 0 = not at all. A lock held by
// another process is fault.KindLocked with its holder.
func Take(ctx context.Context, path string, h Holder, wait time.Duration) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, notTaken(err)
	}
	file := flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|noFollow))
	held, err := takeLock(ctx, file, wait)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, notTaken(err)
	case !held:
		return nil, busyError(path)
	}
	if err := writeHolder(path, h); err != nil {
		_ = file.Unlock() // the write error says more
		return nil, fault.New(fault.KindUnknown, "the lock cannot be written: %w", err).WithHint("check that the disk of the state directory is not full, and that the path is a regular file")
	}
	return &Lock{file}, nil
}

func takeLock(ctx context.Context, file *flock.Flock, wait time.Duration) (bool, error) {
	held, err := file.TryLock()
	if held || err != nil || wait <= 0 {
		return held, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	held, err = file.TryLockContext(ctx, retryEvery)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return held, err
}

// Release lets go of the lock. The file stays: to remove it would let two hold it.
func (l *Lock) Release() error { return l.file.Unlock() }

// writeHolder writes the holder beside the lock, in a file of its own: some systems keep
// others from reading a file that is locked.
func writeHolder(path string, h Holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	file, err := plain.Open(path+".holder", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Close())
}

// busyError names the holder of the lock, as far as that can be read.
func busyError(path string) error {
	err := fault.New(fault.KindLocked, "another run is active").WithHint("wait for it with --lock-timeout 2m")
	var h Holder
	if text, readErr := plain.Read(path+".holder", maxHolder); readErr == nil && json.Unmarshal(text, &h) == nil && h.PID != 0 {
		err.Err = fmt.Errorf("another run is active: %s of %s on %s (pid %d) since %s", h.Run, h.Who, h.Host, h.PID, h.Since.UTC().Format(time.RFC3339))
	}
	return err
}
