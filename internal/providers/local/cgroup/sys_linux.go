package cgroup

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func inodeOf(file string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: file, Err: err}
	}
	return st.Ino, nil
}

func (disk) checkWritable(file string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, file, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "write", Path: file, Err: err}
	}
	return nil
}

// isDelegated reports whether a directory belongs to this (ordinary) user, or is marked as
// delegated by systemd. Root can write everywhere, so for root only the mark counts.
func (disk) isDelegated(dir string) bool {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return false
	}
	if uid := os.Geteuid(); uid != 0 && int(st.Uid) == uid {
		return true
	}
	var mark [8]byte
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		if n, err := unix.Getxattr(dir, name, mark[:]); err == nil && string(mark[:n]) == "1" {
			return true
		}
	}
	return false
}

func openDir(dir string) (int, error) {
	return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func closeDir(fd int) error { return unix.Close(fd) }

func threadID() int { return unix.Gettid() }

// handle holds a process open, so that its PID cannot be reused between lookup and signal. A
// negative fd stands for a kernel before 5.3, which only knows the PID.
type handle struct{ pid, fd int }

func openProcess(pid int) (handle, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) {
		return handle{pid: pid, fd: -1}, nil
	}
	return handle{pid: pid, fd: fd}, err
}

func (h handle) signalProcess(sig syscall.Signal) error {
	if h.fd < 0 {
		return unix.Kill(h.pid, sig)
	}
	return unix.PidfdSendSignal(h.fd, sig, nil, 0)
}

func (h handle) closeHandle() {
	if h.fd >= 0 {
		_ = unix.Close(h.fd)
	}
}

// awaitEvent waits until done is true for the file. The kernel signals each change of
// cgroup.events as POLLPRI; a read every second covers files without events.
func awaitEvent(ctx context.Context, file string, done func(text string) bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	wakeR, wakeW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer wakeR.Close()
	defer wakeW.Close()
	defer context.AfterFunc(ctx, func() { _, _ = wakeW.Write([]byte{0}) })()
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}, {Fd: int32(wakeR.Fd()), Events: unix.POLLIN}}
	buf := make([]byte, 256)
	for {
		n, err := f.ReadAt(buf, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if done(string(buf[:n])) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := unix.Poll(fds, int(time.Second/time.Millisecond)); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
