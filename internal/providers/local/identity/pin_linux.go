package identity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sigstop stops a process; it does not exist on all systems of this package.
const sigstop = syscall.SIGSTOP

// pin is a pidfd: while it is open it refers to one process.
type pin struct{ fd int }

func openPin(pid int) (pin, error) {
	if pid <= 0 {
		return pin{fd: -1}, fmt.Errorf("%d is not a process id", pid)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		return pin{fd: fd}, nil
	case errors.Is(err, unix.ESRCH):
		return pin{fd: -1}, ErrDead
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		// The number is the id of a thread.
		return pin{fd: -1}, ErrForeign
	}
	return pin{fd: -1}, os.NewSyscallError("pidfd_open", err) // ENOSYS is errors.ErrUnsupported: older than 5.3
}

func (at pin) closePin() { _ = unix.Close(at.fd) }

// pidfdInode identifies the process within this boot; 0 where pidfds are anonymous files that
// all share one inode (before Linux 6.9).
func (at pin) pidfdInode() (uint64, error) {
	var fs unix.Statfs_t
	if err := retryInterrupted(func() error { return unix.Fstatfs(at.fd, &fs) }); err != nil {
		return 0, os.NewSyscallError("fstatfs", err)
	}
	if fs.Type != unix.PID_FS_MAGIC {
		return 0, nil
	}
	var st unix.Stat_t
	if err := retryInterrupted(func() error { return unix.Fstat(at.fd, &st) }); err != nil {
		return 0, os.NewSyscallError("fstat", err)
	}
	return st.Ino, nil
}

// readIdentity reads the identity of the pinned process, zombie or not.
func (at pin) readIdentity(pid int) (Process, error) {
	ino, err := at.pidfdInode()
	if err != nil {
		return Process{}, err
	}
	boot, err := bootID()
	if err != nil {
		return Process{}, err
	}
	ticks, err := at.startTicks(pid)
	return Process{BootID: boot, PID: pid, StartTicks: ticks, PidfdInode: ino}, err
}

// verifyIdentity checks whether the pinned process is p and has not exited. The start time is
// read only where there is no inode: /proc may hide it (hidepid).
func (at pin) verifyIdentity(p Process) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	now := Process{BootID: boot, PID: p.PID}
	if now.PidfdInode, err = at.pidfdInode(); err != nil {
		return err
	}
	if p.PidfdInode == 0 || now.PidfdInode == 0 {
		if now.StartTicks, err = at.startTicks(p.PID); err != nil {
			return err
		}
	}
	if err := p.sameAs(now); err != nil {
		return err
	}
	return at.deadIfExited()
}

// startTicks reads the start time. The file is found by PID, so afterwards the pinned process
// must still have that PID, which it has until it is reaped.
func (at pin) startTicks(pid int) (uint64, error) {
	stat, err := Host().Stat(pid)
	if reaped := unix.PidfdSendSignal(at.fd, 0, nil, 0); errors.Is(reaped, unix.ESRCH) {
		return 0, ErrDead
	}
	if errors.Is(err, ErrDead) {
		return 0, fmt.Errorf("process %d exists, but /proc does not show it", pid)
	}
	return stat.StartTicks, err
}

// deadIfExited polls the pidfd: it is readable from the exit of the last thread on. State Z in
// /proc is less precise: it is also the state of a main thread that ended before the others.
func (at pin) deadIfExited() error {
	poll := []unix.PollFd{{Fd: int32(at.fd), Events: unix.POLLIN}}
	err := retryInterrupted(func() error { _, err := unix.Poll(poll, 0); return err })
	switch {
	case err != nil:
		return os.NewSyscallError("poll", err)
	case poll[0].Revents != 0:
		return ErrDead
	}
	return nil
}

func (at pin) sendSignal(_ Process, sig syscall.Signal) error {
	if err := at.deadIfExited(); err != nil {
		return err
	}
	err := unix.PidfdSendSignal(at.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrDead
	}
	return os.NewSyscallError("pidfd_send_signal", err)
}

// watcher waits on a duplicate of the descriptor, so that each wait has its own deadline and
// outlives the handle.
type watcher struct{ file *os.File }

func (at pin) newWatcher(Process) (watcher, error) {
	fd, err := unix.FcntlInt(uintptr(at.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return watcher{}, os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return watcher{}, os.NewSyscallError("fcntl", err)
	}
	return watcher{file: os.NewFile(uintptr(fd), "pidfd")}, nil
}

// waitExit parks the goroutine in the runtime's poller; no thread is blocked.
func (w watcher) waitExit(ctx context.Context) error {
	defer w.file.Close()
	raw, err := w.file.SyscallConn()
	if err != nil {
		return err
	}
	var seen error
	ended := func(fd uintptr) bool {
		seen = pin{fd: int(fd)}.deadIfExited()
		return seen != nil
	}
	stop := context.AfterFunc(ctx, func() { _ = w.file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = raw.Read(ended)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ctx.Err()
	case err == nil && !errors.Is(seen, ErrDead):
		return seen
	}
	return err
}

func bootID() (string, error) {
	var room [64]byte
	text, err := readSmall("/proc/sys/kernel/random/boot_id", room[:])
	return strings.TrimSpace(string(text)), err
}
