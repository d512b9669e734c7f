//go:build linux && !amd64

package identity

// oldWaitKindOf knows none: poll, select and epoll_wait are implemented by their newer forms here.
func oldWaitKindOf(uintptr) waitKind { return waitNone }
