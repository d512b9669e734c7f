//go:build unix

package lock

import "syscall"

// noFollow refuses a link where the lock's file belongs: it would make or lock a
// file of its maker's choice.
const noFollow = syscall.O_NOFOLLOW
