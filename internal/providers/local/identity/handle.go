package identity

import (
	"context"
	"os"
	"sync"
	"syscall"
)

// Handle is a hold on one process. What is done through it concerns that
// process or nobody, however often its number is reused meanwhile. It is safe
// for concurrent use.
//
// macOS has no such hold: there the identity is compared right before each
// signal, which leaves a gap of microseconds.
type Handle struct {
	process Process
	mu      sync.RWMutex // held for writing by Close, so that no call meets a reused descriptor
	at      pin
	closed  bool
}

// Open takes hold of a recorded process. The identity is compared after the
// hold is taken, so a reuse of the number at any moment is seen. Errors:
// ErrDead, ErrForeign, or that it cannot be known.
func Open(p Process) (*Handle, error) {
	at, err := pinned(p.PID)
	if err != nil {
		return nil, err
	}
	if err := at.verify(p); err != nil {
		at.close()
		return nil, err
	}
	return &Handle{process: p, at: at}, nil
}

// OpenWhere takes hold of whoever runs under a number and keeps the hold if
// holds says yes. The question is asked while the hold is taken, so the answer
// is about the process behind the handle: this is how a process that was found
// by a search is told from one that has taken its number since. Errors: ErrDead,
// ErrForeign (holds said no), or that it cannot be known.
func OpenWhere(pid int, holds func() bool) (*Handle, error) {
	at, err := pinned(pid)
	if err != nil {
		return nil, err
	}
	yes := holds()
	p, err := at.identify(pid)
	if err == nil {
		err = at.verify(p)
	}
	if err == nil {
		err = foreignUnless(yes)
	}
	if err != nil {
		at.close()
		return nil, err
	}
	return &Handle{process: p, at: at}, nil
}

// Process is the identity behind the handle.
func (h *Handle) Process() Process { return h.process }

// Signal sends a signal, 0 to ask only. Errors: ErrDead when it has exited
// already, fs.ErrPermission, os.ErrClosed.
func (h *Handle) Signal(sig syscall.Signal) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return os.ErrClosed
	}
	return h.at.signal(h.process, sig)
}

// Wait returns nil once the process has exited, whoever its parent is and
// whether or not it was reaped; it neither reaps nor polls. When ctx ends first
// it returns the context's error at once. Any number of goroutines may wait.
func (h *Handle) Wait(ctx context.Context) error {
	h.mu.RLock()
	if h.closed {
		h.mu.RUnlock()
		return os.ErrClosed
	}
	w, err := h.at.watch(h.process)
	h.mu.RUnlock()
	if err != nil {
		return err
	}
	return w.wait(ctx)
}

// Close lets go of the process; a Wait that has begun goes on. Closing twice is
// allowed.
func (h *Handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	h.at.close()
	return nil
}
