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

func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// ErrTooWide says that a search for processes to end returned init or an ancestor of the
// caller, so that no process of that search was signalled.
var ErrTooWide = errors.New("the search names init or an ancestor of the caller: no process is signalled")

// End kills all processes that find returns, until it returns no living one, and returns how
// many it killed. It is for trees without a cgroup; find is called again after each step and
// may search by Descendants, by Marked or by both. New processes are stopped before the first
// kill, so that a fork bomb cannot outrun the search. The caller itself is left out. When ctx
// ends, the processes found so far are killed, and the context's error is returned.
//
// Errors: ErrTooWide, before any process of that search is signalled; fs.ErrPermission when
// one may not be signalled, after the others are killed; errors of find.
func (p Proc) End(ctx context.Context, find func() ([]Stat, error)) (int, error) {
	met := map[Stat]bool{}
	for {
		living, err := p.livingOthers(find)
		if err != nil || len(living) == 0 {
			return len(met), err
		}
		if p.stopNew(living, met) && ctx.Err() == nil {
			continue // search again: stopped processes fork no more
		}
		held, err := p.withHandles(living, func(h *Handle) error { return h.Signal(syscall.SIGKILL) })
		if err != nil || held == 0 { // 0: all of them have ended
			return len(met), err
		}
		if _, err := p.withHandles(living, func(h *Handle) error { return h.Wait(ctx) }); err != nil {
			return len(met), err
		}
	}
}

// livingOthers leaves out dead processes and the caller. It refuses the whole search when it
// returned init or an ancestor of the caller: no sandbox contains those, so the search is
// wrong, and its other results are not trusted either.
func (p Proc) livingOthers(find func() ([]Stat, error)) ([]Stat, error) {
	all, err := find()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	above, err := p.ancestorSet(os.Getpid())
	if err != nil {
		return nil, err
	}
	living := make([]Stat, 0, len(all))
	for _, s := range all {
		switch {
		case s.PID == os.Getpid() || s.Dead():
		case above[s.PID]:
			return nil, ErrTooWide
		default:
			living = append(living, s)
		}
	}
	return living, nil
}

// ancestorSet is the set of the ancestors of pid, and init in any case.
func (p Proc) ancestorSet(pid int) (map[int]bool, error) {
	above := map[int]bool{1: true}
	for s, err := p.Stat(pid); ; s, err = p.Stat(s.PPID) {
		switch {
		case errors.Is(err, ErrDead): // it ended meanwhile, or /proc hides it
			return above, nil
		case err != nil:
			return nil, err
		case s.PPID <= 1 || above[s.PPID]:
			return above, nil
		}
		above[s.PPID] = true
	}
}

// stopNew stops the processes that were not met before and reports whether there was one. A
// process that cannot be stopped is left to the kill, which reports it.
func (p Proc) stopNew(living []Stat, met map[Stat]bool) bool {
	fresh := false
	for _, s := range living {
		who := Stat{PID: s.PID, StartTicks: s.StartTicks}
		if met[who] {
			continue
		}
		met[who], fresh = true, true
		_, _ = p.withHandles([]Stat{s}, func(h *Handle) error { return h.Signal(sigstop) })
	}
	return fresh
}

// withHandles opens every process in turn and returns how many it could open; processes that
// have ended meanwhile are skipped.
func (p Proc) withHandles(list []Stat, do func(*Handle) error) (held int, failed error) {
	for _, s := range list {
		h, err := p.Open(s)
		if err == nil {
			held++
			err = errors.Join(do(h), h.Close())
		}
		if !errors.Is(err, ErrDead) && !errors.Is(err, ErrForeign) {
			failed = errors.Join(failed, err)
		}
	}
	return held, failed
}
