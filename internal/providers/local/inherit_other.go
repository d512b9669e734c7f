//go:build unix && !linux

package local

import "errors"

func closeOnExecFrom(uint) error { return errors.ErrUnsupported }
