//go:build unix

package hostfile

import "syscall"

// nonBlock opens a pipe at once, or fails without a reader.
const nonBlock = syscall.O_NONBLOCK

const errNoReader = syscall.ENXIO
