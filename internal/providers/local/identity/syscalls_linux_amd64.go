package identity

import "golang.org/x/sys/unix"

// oldWaitKindOf knows the system calls that newer architectures never had.
func oldWaitKindOf(number uintptr) waitKind {
	switch number {
	case unix.SYS_EPOLL_WAIT:
		return waitEpoll
	case unix.SYS_POLL, unix.SYS_SELECT:
		return waitAny
	}
	return waitNone
}
