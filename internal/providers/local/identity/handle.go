package identity

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
)

// Handle refers to one process. A call through it affects that process or none, even if its
// PID is reused meanwhile. It is safe for concurrent use.
//
// macOS has no such handle: there the identity is compared right before each signal, which
// leaves a gap of microseconds.
type Handle struct {
	process Process
	mu      sync.RWMutex // held for writing by Close, so that no call uses a reused descriptor
	at      pin
	closed  bool
}

// Open opens a recorded process. The identity is compared after the descriptor is opened, so
// a reuse of the PID at any moment is detected. Errors: ErrDead, ErrForeign, or that it is
// unknown.
func Open(p Process) (*Handle, error) {
	at, err := openPin(p.PID)
	if err != nil {
		return nil, err
	}
	if err := at.verifyIdentity(p); err != nil {
		at.closePin()
		return nil, err
	}
	return &Handle{process: p, at: at}, nil
}

// OpenWhere opens the process with a PID if holds returns true. holds is called while the
// process is open, so the result is about the process of the handle: a process found by a
// search is thus distinguished from one that has reused its PID. Errors: ErrDead, ErrForeign
// (holds returned false), or that it is unknown.
func OpenWhere(pid int, holds func() bool) (*Handle, error) {
	at, err := openPin(pid)
	if err != nil {
		return nil, err
	}
	yes := holds()
	p, err := at.readIdentity(pid)
	if err == nil {
		err = at.verifyIdentity(p)
	}
	if err == nil {
		err = foreignUnless(yes)
	}
	if err != nil {
		at.closePin()
		return nil, err
	}
	return &Handle{process: p, at: at}, nil
}

// Signal sends a signal, 0 only to check. Errors: ErrDead when the process has exited,
// fs.ErrPermission, os.ErrClosed.
func (h *Handle) Signal(sig syscall.Signal) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return os.ErrClosed
	}
	return h.at.sendSignal(h.process, sig)
}

// Wait returns nil once the process has exited, whatever its parent and whether or not it was
// reaped; it neither reaps nor polls. When ctx ends first it returns the context's error.
// Any number of goroutines may wait.
func (h *Handle) Wait(ctx context.Context) error {
	h.mu.RLock()
	if h.closed {
		h.mu.RUnlock()
		return os.ErrClosed
	}
	w, err := h.at.newWatcher(h.process)
	h.mu.RUnlock()
	if err != nil {
		return err
	}
	return w.waitExit(ctx)
}

// Close releases the process; a Wait that has begun continues. Closing twice is allowed.
func (h *Handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	h.at.closePin()
	return nil
}

// retryInterrupted repeats a system call that a signal interrupted.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
