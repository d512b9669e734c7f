//go:build !linux

package wire

import (
	"errors"
	"os"
)

// SocketName is the command socket's name in the sandbox's folder.
const SocketName = "ctl.sock"

// Connect is not supported on this system.
func Connect(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// TryConnect is not supported on this system.
func TryConnect(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// SendExec is not supported on this system.
func SendExec(*os.File, Exec, [3]*os.File) error { return errors.ErrUnsupported }
