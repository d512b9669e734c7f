//go:build unix

package hostfile

import "syscall"

// nonBlock has a pipe opened at once, or refused where nobody reads it.
const nonBlock = syscall.O_NONBLOCK

const noReader = syscall.ENXIO
