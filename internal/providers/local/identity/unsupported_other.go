//go:build !linux && !darwin

package identity

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

func unsupportedError() error {
	return fmt.Errorf("processes cannot be distinguished on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// sigstop is never sent: no process can be opened.
const sigstop = syscall.Signal(0)

type pin struct{}

func openPin(int) (pin, error) { return pin{}, unsupportedError() }

func (pin) closePin() {}

func (pin) readIdentity(int) (Process, error) { return Process{}, unsupportedError() }

func (pin) verifyIdentity(Process) error { return unsupportedError() }

func (pin) sendSignal(Process, syscall.Signal) error { return unsupportedError() }

type watcher struct{}

func (pin) newWatcher(Process) (watcher, error) { return watcher{}, unsupportedError() }

func (watcher) waitExit(context.Context) error { return unsupportedError() }

// Stat is not supported.
func (p Proc) Stat(int) (Stat, error) { return Stat{}, unsupportedError() }

func (p Proc) listPIDs() ([]int, error) { return nil, unsupportedError() }

func (p Proc) hasEntry(int, string) bool { return false }

// IgnoresTerm is not supported.
func (p Proc) IgnoresTerm(int) (bool, error) { return false, unsupportedError() }

// IOOperations is unknown.
func (p Proc) IOOperations(int) (int64, bool) { return 0, false }

// BusiestThread is unknown.
func (p Proc) BusiestThread(int) (Thread, bool) { return Thread{}, false }

// Waiting is unknown.
func (p Proc) Waiting(int) string { return "" }
