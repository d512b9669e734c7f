//go:build unix

package lock

import "syscall"

// noFollow refuses a link in place of the lock file: whoever made the link would choose the
// file that is locked.
const noFollow = syscall.O_NOFOLLOW
