package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// sigstop stops a process; it does not exist on all systems of this package.
const sigstop = syscall.SIGSTOP

// pin is empty: macOS has no descriptor for a process.
type pin struct{}

func openPin(pid int) (pin, error) {
	if pid <= 0 {
		return pin{}, fmt.Errorf("%d is not a process id", pid)
	}
	_, err := readKinfo(pid)
	return pin{}, err
}

func (pin) closePin() {}

func (pin) readIdentity(pid int) (Process, error) {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return Process{}, os.NewSyscallError("sysctl kern.bootsessionuuid", err)
	}
	k, err := readKinfo(pid)
	if err != nil {
		return Process{}, err
	}
	return Process{BootID: boot, PID: pid, StartTicks: startOf(k)}, nil
}

func (at pin) verifyIdentity(p Process) error {
	now, err := at.readIdentity(p.PID)
	if err != nil {
		return err
	}
	if err := p.sameAs(now); err != nil {
		return err
	}
	k, err := readKinfo(p.PID)
	if err == nil && k.Proc.P_stat == stateZombie {
		return ErrDead
	}
	return err
}

func (at pin) sendSignal(p Process, sig syscall.Signal) error {
	if err := at.verifyIdentity(p); err != nil {
		return err
	}
	err := unix.Kill(p.PID, sig)
	if errors.Is(err, unix.ESRCH) {
		return ErrDead
	}
	return os.NewSyscallError("kill", err)
}

// watcher waits on a kernel queue for the exit of the process.
type watcher struct {
	queue int
	over  bool // it had exited before the queue could watch it
}

// wake is the identifier of the event by which a context interrupts a wait.
const wake = 1

func (at pin) newWatcher(p Process) (watcher, error) {
	queue, err := unix.Kqueue()
	if err != nil {
		return watcher{}, os.NewSyscallError("kqueue", err)
	}
	unix.CloseOnExec(queue)
	changes := make([]unix.Kevent_t, 2)
	unix.SetKevent(&changes[0], wake, unix.EVFILT_USER, unix.EV_ADD|unix.EV_CLEAR)
	unix.SetKevent(&changes[1], p.PID, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	changes[1].Fflags = unix.NOTE_EXIT
	err = retryInterrupted(func() error { _, err := unix.Kevent(queue, changes, nil, nil); return err })
	if err == nil {
		err = at.verifyIdentity(p) // after it is watched, so that an exit in between is detected
	}
	over := errors.Is(err, unix.ESRCH) || errors.Is(err, ErrDead) || errors.Is(err, ErrForeign)
	if err != nil && !over {
		_ = unix.Close(queue)
		return watcher{}, err
	}
	return watcher{queue: queue, over: over}, nil
}

func (w watcher) waitExit(ctx context.Context) error {
	defer func() { _ = unix.Close(w.queue) }()
	if w.over {
		return nil
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		change := make([]unix.Kevent_t, 1)
		unix.SetKevent(&change[0], wake, unix.EVFILT_USER, 0)
		change[0].Fflags = unix.NOTE_TRIGGER
		_, _ = unix.Kevent(w.queue, change, nil, nil)
	})
	defer func() {
		if !stop() {
			<-woken // the queue must not be closed before
		}
	}()
	events := make([]unix.Kevent_t, 1)
	err := retryInterrupted(func() error { _, err := unix.Kevent(w.queue, nil, events, nil); return err })
	switch {
	case err != nil:
		return os.NewSyscallError("kevent", err)
	case events[0].Filter == unix.EVFILT_PROC:
		return nil
	}
	return ctx.Err()
}
