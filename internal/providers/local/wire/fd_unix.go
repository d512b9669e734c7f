//go:build unix

package wire

import "golang.org/x/sys/unix"

func closeOnExec(fd int) { unix.CloseOnExec(fd) }
