//go:build !linux

package cgroup

import (
	"context"
	"errors"
	"syscall"
)

// Control groups exist on Linux only. Detect reports that before any of these is called.

func inodeOf(string) (uint64, error) { return 0, errors.ErrUnsupported }

func (disk) checkWritable(string) error { return errors.ErrUnsupported }

func (disk) isDelegated(string) bool { return false }

func openDir(string) (int, error) { return -1, errors.ErrUnsupported }

func closeDir(int) error { return errors.ErrUnsupported }

func threadID() int { return 0 }

type handle struct{}

func openProcess(int) (handle, error) { return handle{}, errors.ErrUnsupported }

func (handle) signalProcess(syscall.Signal) error { return errors.ErrUnsupported }

func (handle) closeHandle() {}

func awaitEvent(context.Context, string, func(string) bool) error { return errors.ErrUnsupported }
