//go:build !linux

package cgroup

import (
	"context"
	"errors"
	"syscall"
)

// Control groups exist on Linux only. Detect says so before any of these is
// reached; they are here so that the room compiles everywhere.

func inodeOf(string) (uint64, error) { return 0, errors.ErrUnsupported }

func (disk) writable(string) error { return errors.ErrUnsupported }

func (disk) delegated(string) bool { return false }

func openDir(string) (int, error) { return -1, errors.ErrUnsupported }

func closeDir(int) error { return errors.ErrUnsupported }

func threadID() int { return 0 }

type handle struct{}

func openProcess(int) (handle, error) { return handle{}, errors.ErrUnsupported }

func (handle) signal(syscall.Signal) error { return errors.ErrUnsupported }

func (handle) close() {}

func awaitEvent(context.Context, string, func(string) bool) error { return errors.ErrUnsupported }
