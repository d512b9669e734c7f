//go:build !unix

package record

import (
	"errors"
	"os"

	"sbx/internal/providers/local/identity"
)

func (s Store) lockNew(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Held is not supported on this system.
func (s Store) Held(string) (bool, error) { return false, errors.ErrUnsupported }

// HoldExec is not supported on this system.
func (s Store) HoldExec(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// ExecHeld is not supported on this system.
func (s Store) ExecHeld(string) (bool, error) { return false, errors.ErrUnsupported }

// TryLock is not supported on this system.
func (s Store) TryLock(string) (*os.File, bool, error) { return nil, false, errors.ErrUnsupported }

// TryLockEdit is not supported on this system.
func (s Store) TryLockEdit(string) (*os.File, bool, error) {
	return nil, false, errors.ErrUnsupported
}

// SignLock is not supported on this system.
func SignLock(*os.File, identity.Process) error { return errors.ErrUnsupported }

// Holder is unknown on this system.
func (s Store) Holder(string) (identity.Process, bool) { return identity.Process{}, false }
