//go:build !linux && !darwin

package identity

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// unsupported is the error of every function here.
func unsupported() error {
	return fmt.Errorf("processes cannot be told apart on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// sigstop is never sent: no process can be opened.
const sigstop = syscall.Signal(0)

type pin struct{}

func pinned(int) (pin, error) { return pin{}, unsupported() }

func (pin) close() {}

func (pin) identify(int) (Process, error) { return Process{}, unsupported() }

func (pin) verify(Process) error { return unsupported() }

func (pin) signal(Process, syscall.Signal) error { return unsupported() }

type watcher struct{}

func (pin) watch(Process) (watcher, error) { return watcher{}, unsupported() }

func (watcher) wait(context.Context) error { return unsupported() }

// Stat is not supported.
func (p Proc) Stat(int) (Stat, error) { return Stat{}, unsupported() }

func (p Proc) pids() ([]int, error) { return nil, unsupported() }

func (p Proc) hasEntry(int, string) bool { return false }

// IgnoresTerm is not supported.
func (p Proc) IgnoresTerm(int) (bool, error) { return false, unsupported() }

// IOOperations is unknown.
func (p Proc) IOOperations(int) (int64, bool) { return 0, false }

// Busiest is unknown.
func (p Proc) Busiest(int) (int64, bool) { return 0, false }

// Waiting is unknown.
func (p Proc) Waiting(int) string { return "" }
