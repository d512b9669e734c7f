//go:build !linux && !darwin

package identity

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

// unsupported is what every question is answered with here.
func unsupported() error {
	return fmt.Errorf("processes cannot be told apart on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// sigstop is never sent: no process can be taken hold of.
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

func (p Proc) stat(int) (Stat, error) { return Stat{}, unsupported() }

func (p Proc) pids() ([]int, error) { return nil, unsupported() }

func (p Proc) hasEntry(int, string) bool { return false }

func (p Proc) ignoresTerm(int) (bool, error) { return false, unsupported() }

func (p Proc) operations(int) (int64, bool) { return 0, false }

func (p Proc) busiest(int) (int64, bool) { return 0, false }

func (p Proc) waiting(int) string { return "" }
